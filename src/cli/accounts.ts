import type { Command } from "commander";
import { Argument, Option } from "commander";
import { type AccountProblem, describeAccountProblem, isBalanced, type Statement } from "../accounts/accounts.ts";
import type { Account } from "../accounts/store.ts";
import { isoTime } from "../base/clock.ts";
import { PLAN_NAMES, type PlanName, rateOf } from "../billing/plans.ts";
import { CommandFailed, type Io, print, UsageError } from "./io.ts";
import { table } from "./terminal-text.ts";
import { administer, type Administration } from "./data-directory.ts";

const shown = ({ ledger, store }: Administration, account: Account) => {
  const { perSecond, burst } = rateOf(account.plan);
  return {
    id: account.id,
    name: account.name,
    plan: account.plan,
    credits: ledger.balance(account.id),
    limits: { requests_per_second: perSecond, burst },
    keys: store.listKeys(account.id).filter(({ revokedAtMs }) => revokedAtMs === null).length,
    created_at: isoTime(account.createdAtMs),
  };
};

const HEADINGS = ["ACCOUNT", "PLAN", "AVAILABLE", "HELD", "REQUESTS/S", "KEYS", "CREATED"];

const asText = (account: ReturnType<typeof shown>): string => table(HEADINGS, [rowOf(account)]);

const rowOf = ({ name, plan, credits, limits, keys, created_at }: ReturnType<typeof shown>): string[] => [
  name,
  plan,
  String(credits.available),
  String(credits.held),
  `${limits.requests_per_second} (burst ${limits.burst})`,
  String(keys),
  created_at,
];

const failed = (problem: AccountProblem): Error => {
  const message = describeAccountProblem(problem);
  const isUsage = problem === "name_invalid" || problem === "credits_invalid";
  return isUsage ? new UsageError(message, problem) : new CommandFailed(message, problem);
};

/** `accounts list | create | show | set-plan` */
export const addAccountCommands = (program: Command, io: Io): void => {
  const group = program.command("accounts").description("the accounts that own keys and credits");
  const plans = [...PLAN_NAMES];

  group
    .command("list")
    .description("all accounts with plan and credits")
    .option("--json", "print JSON")
    .action(({ json }) =>
      administer(io, (administration) => {
        const { store, snapshot } = administration;
        const accounts = snapshot(() => store.listAccounts().map((account) => shown(administration, account)));
        print(io, json, { accounts }, () => table(HEADINGS, accounts.map(rowOf)));
      }),
    );

  group
    .command("create")
    .description("a new account, with 100 free credits")
    .argument("<name>", "its name")
    .addOption(new Option("--plan <plan>", "rate limit of its keys").choices(plans).default("free"))
    .option("--json", "print JSON")
    .action((name: string, { plan, json }: { plan: PlanName; json?: boolean }) =>
      administer(
        io,
        (administration) => {
          const created = administration.accounts.create(name, plan);
          if (!created.ok) throw failed(created.error);
          const account = shown(administration, created.value);
          print(io, json, account, () => asText(account));
        },
        "create",
      ),
    );

  group
    .command("show")
    .description("one account")
    .argument("<name>", "its name")
    .option("--json", "print JSON")
    .action((name: string, { json }) =>
      administer(io, (administration) => {
        const account = administration.snapshot(() => {
          const found = administration.store.findAccountByName(name);
          return found === undefined ? undefined : shown(administration, found);
        });
        if (account === undefined) throw failed("unknown_account");
        print(io, json, account, () => asText(account));
      }),
    );

  group
    .command("set-plan")
    .description("another plan, from the next request on")
    .argument("<name>", "the account")
    .addArgument(new Argument("<plan>", "the plan").choices(plans))
    .option("--json", "print JSON")
    .action((name: string, plan: PlanName, { json }) =>
      administer(io, (administration) => {
        const changed = administration.accounts.setPlan(name, plan);
        if (!changed.ok) throw failed(changed.error);
        const account = shown(administration, changed.value);
        print(io, json, account, () => asText(account));
      }),
    );
};

/** `credits show | grant` */
export const addCreditCommands = (program: Command, io: Io): void => {
  const group = program.command("credits").description("credits of an account: one pays one verified address");

  const asBalanceText = ({ account, available, held, granted, spent }: Omit<Statement, "ledger">) =>
    table(
      ["ACCOUNT", "AVAILABLE", "HELD", "GRANTED", "SPENT"],
      [[account, String(available), String(held), String(granted), String(spent)]],
    );

  group
    .command("show")
    .description("the balance, checked against the sum of the ledger")
    .argument("<name>", "the account")
    .option("--json", "print JSON")
    .action((name: string, { json }) =>
      administer(io, (administration) => {
        const statement = administration.accounts.statement(name);
        if (!statement.ok) throw failed(statement.error);
        const { ledger, ...balance } = statement.value;
        if (!isBalanced(statement.value)) {
          throw new CommandFailed(
            `The ledger's sum (${ledger.available} available, ${ledger.held} held) is not the balance (${balance.available}, ${balance.held}). Restore a backup and report this.`,
            "ledger_mismatch",
          );
        }
        print(io, json, balance, () => asBalanceText(balance));
      }),
    );

  group
    .command("grant")
    .description("add credits")
    .argument("<name>", "the account")
    .argument("<credits>", "how many")
    .option("--note <text>", "why, for the ledger", "granted on the command line")
    .option("--json", "print JSON")
    .action((name: string, credits: string, { note, json }: { note: string; json?: boolean }) =>
      administer(io, (administration) => {
        const granted = administration.accounts.grantCredits(
          name,
          /^\d+$/.test(credits) ? Number(credits) : Number.NaN,
          note,
        );
        if (!granted.ok) throw failed(granted.error);
        const { ledger: _, ...balance } = granted.value;
        print(io, json, balance, () => asBalanceText(balance));
      }),
    );
};
