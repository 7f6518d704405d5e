import type { Command } from "commander";
import { Argument, Option } from "commander";
import { type AccountProblem, describeAccountProblem, isBalanced, type Statement } from "../accounts/accounts.ts";
import type { Account } from "../accounts/store.ts";
import { isoTime } from "../base/clock.ts";
import { PLAN_NAMES, type PlanName, rateOf } from "../billing/plans.ts";
import { addCommand, addGroup } from "./command.ts";
import { CommandFailed, type Io, print, UsageError } from "./io.ts";
import { table } from "./terminal-text.ts";
import { administer, type Administration, unknownAccount } from "./data-directory.ts";

const accountView = ({ ledger, store }: Administration, account: Account) => {
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

type AccountView = ReturnType<typeof accountView>;

const HEADINGS = ["ACCOUNT", "PLAN", "AVAILABLE", "HELD", "REQUESTS/S", "KEYS", "CREATED"];

const printAccount = (io: Io, json: boolean | undefined, account: AccountView): void =>
  print(io, json, account, () => table(HEADINGS, [rowOf(account)]));

const rowOf = ({ name, plan, credits, limits, keys, created_at }: AccountView): string[] => [
  name,
  plan,
  String(credits.available),
  String(credits.held),
  `${limits.requests_per_second} (burst ${limits.burst})`,
  String(keys),
  created_at,
];

const accountError = (problem: AccountProblem, name: string): Error => {
  const message = describeAccountProblem(problem, name);
  const isUsage = problem === "name_invalid" || problem === "credits_invalid";
  return isUsage ? new UsageError(message, problem) : new CommandFailed(message, problem);
};

const PLANS = [...PLAN_NAMES];

/** `accounts list | create | show | set-plan` */
export const addAccountCommands = (program: Command, io: Io): void => {
  const group = addGroup(program, "accounts", {
    description: "Create and show the accounts that own keys and credits.",
    example: "accounts list",
  });
  addAccountList(group, io);
  addAccountCreate(group, io);
  addAccountShow(group, io);
  addAccountSetPlan(group, io);
};

const addAccountList = (group: Command, io: Io): Command =>
  addCommand(group, "list", {
    description: "List all accounts with their plan and credits.",
    example: "accounts list",
  }).action(({ json }) =>
    administer(io, (administration) => {
      const { store, snapshot } = administration;
      const accounts = snapshot(() => store.listAccounts().map((account) => accountView(administration, account)));
      print(io, json, { accounts }, () => table(HEADINGS, accounts.map(rowOf)));
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

const addAccountSetPlan = (group: Command, io: Io): Command =>
  addCommand(group, "set-plan", {
    description: "Change the plan of an account, effective from its next request.",
    example: "accounts set-plan acme scale",
  })
    .argument("<name>", "name of the account")
    .addArgument(new Argument("<plan>", "the new plan").choices(PLANS))
    .action((name: string, plan: PlanName, { json }) =>
      administer(io, (administration) => {
        const changed = administration.accounts.setPlan(name, plan);
        if (!changed.ok) throw accountError(changed.error, name);
        printAccount(io, json, accountView(administration, changed.value));
      }),
    );

/** `credits show | grant` */
export const addCreditCommands = (program: Command, io: Io): void => {
  const group = addGroup(program, "credits", {
    description: "Show and grant credits; verifying an address costs one.",
    example: "credits show acme",
  });
  addCreditsShow(group, io);
  addCreditsGrant(group, io);
};

const printBalance = (io: Io, json: boolean | undefined, { ledger: _, ...balance }: Statement): void =>
  print(io, json, balance, () => {
    const { account, available, held, granted, spent } = balance;
    return table(
      ["ACCOUNT", "AVAILABLE", "HELD", "GRANTED", "SPENT"],
      [[account, ...[available, held, granted, spent].map(String)]],
    );
  });

const addCreditsShow = (group: Command, io: Io): Command =>
  addCommand(group, "show", {
    description: "Show the balance of an account and check it against its ledger.",
    example: "credits show acme",
  })
    .argument("<name>", "name of the account")
    .action((name: string, { json }) =>
      administer(io, (administration) => {
        const statement = administration.accounts.statement(name);
        if (!statement.ok) throw accountError(statement.error, name);
        if (!isBalanced(statement.value)) {
          const { available, held, ledger } = statement.value;
          throw new CommandFailed(
            `The ledger adds up to ${ledger.available} available and ${ledger.held} held, but the balance is ${available} and ${held}. Restore a backup and report this.`,
            "ledger_mismatch",
          );
        }
        printBalance(io, json, statement.value);
      }),
    );

const addCreditsGrant = (group: Command, io: Io): Command =>
  addCommand(group, "grant", {
    description: "Add credits to an account.",
    example: 'credits grant acme 5000 --note "invoice 17"',
  })
    .argument("<name>", "name of the account")
    .argument("<credits>", "number of credits")
    .option("--note <text>", "reason, kept in the ledger", "granted on the command line")
    .action((name: string, credits: string, { note, json }: { note: string; json?: boolean }) =>
      administer(io, (administration) => {
        const amount = /^\d+$/.test(credits) ? Number(credits) : Number.NaN;
        const granted = administration.accounts.grantCredits(name, amount, note);
        if (!granted.ok) throw accountError(granted.error, name);
        printBalance(io, json, granted.value);
      }),
    );
