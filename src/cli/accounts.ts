import { type Command, Argument, Option } from "commander";
import { type AccountProblem, describeAccountProblem } from "../accounts/accounts.ts";
import type { Account } from "../accounts/store.ts";
import { isoTime } from "../foundation/base/clock.ts";
import { PLAN_NAMES, type PlanName, rateOf } from "../accounts/billing/store.ts";
import { addAccountDelete } from "./account-delete.ts";
import { addCommand, addGroup } from "./command.ts";
import { CommandFailed, type Io, print, UsageError } from "./io.ts";
import { table, tableTime } from "./terminal-text.ts";
import { administer, type Administration, unknownAccount } from "./data-directory.ts";
import { loadConfig } from "./prepare-directory.ts";

const accountView = ({ ledger, store }: Administration, account: Account) => {
  const { perSecond, burst } = rateOf(account);
  return {
    id: account.id,
    name: account.name,
    plan: account.plan,
    credits: ledger.balance(account.id),
    limits: {
      requests_per_second: perSecond,
      burst,
      custom: account.ratePerSecond !== null || account.rateBurst !== null,
    },
    keys: store.listKeys(account.id).filter(({ revokedAtMs }) => revokedAtMs === null).length,
    created_at: isoTime(account.createdAtMs),
    disabled_at: account.disabledAtMs === null ? null : isoTime(account.disabledAtMs),
  };
};

type AccountView = ReturnType<typeof accountView>;

const HEADINGS = ["ACCOUNT", "PLAN", "AVAILABLE", "HELD", "REQUESTS/S", "KEYS", "CREATED", "STATE"];

const printAccount = (io: Io, json: boolean | undefined, account: AccountView): void =>
  print(io, json, account, () => accountTable([account], io));

const rowOf = ({ name, plan, credits, limits, keys, created_at, disabled_at }: AccountView): string[] => [
  name,
  plan,
  String(credits.available),
  String(credits.held),
  `${limits.requests_per_second} (burst ${limits.burst})${limits.custom ? " *" : ""}`,
  String(keys),
  tableTime(created_at),
  disabled_at === null ? "enabled" : "disabled",
];

/** The accounts; a note explains the mark of limits that are not those of the plan. */
const accountTable = (accounts: readonly AccountView[], io: Io): string => {
  const note = accounts.some(({ limits }) => limits.custom) ? "\n* limits of its own" : "";
  return table(HEADINGS, accounts.map(rowOf), io.columns) + note;
};

const USAGE_PROBLEMS: ReadonlySet<AccountProblem> = new Set([
  ...(["name_invalid", "credits_invalid", "note_invalid", "rate_invalid"] as const),
]);

/** The failure that describes a problem of an account. */
export const accountError = (problem: AccountProblem, name: string): Error => {
  const message = describeAccountProblem(problem, name);
  const isUsage = USAGE_PROBLEMS.has(problem);
  return isUsage ? new UsageError(message, problem) : new CommandFailed(message, problem);
};

const PLANS = [...PLAN_NAMES];

/** `accounts list | create | show | set-plan | rename | disable | enable | delete` */
export const addAccountCommands = (program: Command, io: Io): void => {
  const group = addGroup(program, "accounts", {
    description: "Create and manage the accounts that own keys and credits.",
    example: "accounts list",
  });
  addAccountList(group, io);
  addAccountCreate(group, io);
  addAccountShow(group, io);
  addAccountSetPlan(group, io);
  addAccountRename(group, io);
  addAccountSwitch(group, io, false);
  addAccountSwitch(group, io, true);
  addAccountDelete(group, io);
};

const addAccountList = (group: Command, io: Io): Command =>
  addCommand(group, "list", {
    description: "List all accounts with their plan and credits.",
    example: "accounts list",
  }).action(({ json }) =>
    administer(io, (administration) => {
      const { store, snapshot } = administration;
      const accounts = snapshot(() => store.listAccounts().map((account) => accountView(administration, account)));
      print(io, json, { accounts }, () => accountTable(accounts, io));
    }),
  );

const addAccountCreate = (group: Command, io: Io): Command =>
  addCommand(group, "create", {
    description: "Create an account with 100 free credits.",
    example: "accounts create acme --plan growth",
  })
    .argument("<name>", "name of the account")
    .addOption(
      new Option("--plan <plan>", "plan, which sets the rate limit of its keys").choices(PLANS).default("free"),
    )
    .action((name: string, { plan, json }: { plan: PlanName; json?: boolean }) =>
      administer(
        io,
        (administration) => {
          const created = administration.accounts.create(name, plan);
          if (!created.ok) throw accountError(created.error, name);
          printAccount(io, json, accountView(administration, created.value));
        },
        "create",
      ),
    );

const addAccountShow = (group: Command, io: Io): Command =>
  addCommand(group, "show", {
    description: "Show the plan, credits and limits of an account.",
    example: "accounts show acme",
  })
    .argument("<name>", "name of the account")
    .action((name: string, { json }) =>
      administer(io, (administration) => {
        const account = administration.snapshot(() => {
          const found = administration.store.findAccountByName(name);
          return found === undefined ? undefined : accountView(administration, found);
        });
        if (account === undefined) throw unknownAccount(name);
        printAccount(io, json, account);
      }),
    );

const readRate = (name: string, text: string | undefined): number | null => {
  if (text === undefined) return null;
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw new UsageError(`--${name}: "${text}" is not a whole number.`, "rate_invalid");
};

interface PlanOptions {
  readonly rate?: string;
  readonly burst?: string;
  readonly json?: boolean;
}

const addAccountSetPlan = (group: Command, io: Io): Command =>
  addCommand(group, "set-plan", {
    description: "Change the plan and the limits of an account, effective from its next request.",
    example: "accounts set-plan acme scale --rate 40 --burst 200",
  })
    .argument("<name>", "name of the account")
    .addArgument(new Argument("<plan>", "the new plan").choices(PLANS))
    .option("--rate <n>", "requests per second (default: that of the plan)")
    .option("--burst <n>", "requests that may come at once (default: two seconds of the rate)")
    .action((name: string, plan: PlanName, { rate, burst, json }: PlanOptions) =>
      administer(io, (administration) => {
        const custom = { ratePerSecond: readRate("rate", rate), rateBurst: readRate("burst", burst) };
        const changed = administration.accounts.setPlan(name, plan, custom);
        if (!changed.ok) throw accountError(changed.error, name);
        printAccount(io, json, accountView(administration, changed.value));
      }),
    );

const addAccountRename = (group: Command, io: Io): Command =>
  addCommand(group, "rename", {
    description: "Rename an account; its keys, credits and history stay.",
    example: "accounts rename acme acme-corp",
  })
    .argument("<name>", "name of the account")
    .argument("<new-name>", "the new name")
    .action((name: string, to: string, { json }) =>
      administer(io, (administration) => {
        const renamed = administration.accounts.rename(name, to);
        if (!renamed.ok) throw accountError(renamed.error, renamed.error === "unknown_account" ? name : to);
        printAccount(io, json, accountView(administration, renamed.value));
        if (loadConfig(io).imapAccount === name)
          io.err(
            `postwarden: warning: POSTWARDEN_IMAP_ACCOUNT names the account. Set it to "${to}" and restart the service.`,
          );
      }),
    );

const addAccountSwitch = (group: Command, io: Io, isEnabled: boolean): Command =>
  addCommand(
    group,
    isEnabled ? "enable" : "disable",
    isEnabled
      ? {
          description: "Accept the keys and users of an account again and resume its monitoring.",
          example: "accounts enable acme",
        }
      : {
          description:
            "Refuse the keys (403 account_disabled) and users of an account at once and pause its monitoring. Running lists finish, and report mail is still accepted.",
          example: "accounts disable acme",
        },
  )
    .argument("<name>", "name of the account")
    .action((name: string, { json }) =>
      administer(io, (administration) => {
        const changed = administration.accounts.setEnabled(name, isEnabled);
        if (!changed.ok) throw accountError(changed.error, name);
        printAccount(io, json, accountView(administration, changed.value));
      }),
    );
