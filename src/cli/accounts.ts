import { type AccountProblem, describeAccountProblem, isBalanced, type Statement } from "../accounts/accounts.ts";
import { auditChangeText, auditView } from "../accounts/audit-store.ts";
import { PLAN_NAMES, rateOf } from "../accounts/billing/store.ts";
import type { Account } from "../accounts/store.ts";
import { isoTime } from "../foundation/base/clock.ts";
import type { Result } from "../foundation/base/errors.ts";
import { ACCOUNT_DELETE, warnOfSettings } from "./account-delete.ts";
import { ACCOUNT_MOVE, ACCOUNT_TAKE } from "./account-move.ts";
import {
  argument,
  choice,
  command,
  group,
  limit,
  option,
  parsed,
  required,
  type Terminal,
  time,
  toggle,
  withDefault,
} from "./command.ts";
import { accountNamed, type DatabaseContext, inDatabase, inNewDatabase } from "./data-directory.ts";
import { CommandFailed, UsageError } from "./io.ts";
import { tableTime } from "./terminal-text.ts";

const viewOf = ({ ledger, store }: DatabaseContext, account: Account) => {
  const { perSecond, burst } = rateOf(account);
  const custom = account.ratePerSecond !== null || account.rateBurst !== null;
  return {
    id: account.id,
    name: account.name,
    plan: account.plan,
    credits: ledger.balance(account.id),
    limits: { requests_per_second: perSecond, burst, custom },
    keys: store.listKeys(account.id).filter(({ revokedAtMs }) => revokedAtMs === null).length,
    created_at: isoTime(account.createdAtMs),
    disabled_at: account.disabledAtMs === null ? null : isoTime(account.disabledAtMs),
  };
};

type AccountView = ReturnType<typeof viewOf>;

/** The accounts; a note explains the mark of limits that are not those of the plan. */
const tableOf = ({ table }: Terminal, accounts: readonly AccountView[]): string => {
  const rows = accounts.map(({ name, plan, credits, limits, keys, created_at, disabled_at }) => [
    ...[name, plan, String(credits.available), String(credits.held)],
    `${limits.requests_per_second} (burst ${limits.burst})${limits.custom ? " *" : ""}`,
    ...[String(keys), tableTime(created_at), disabled_at === null ? "enabled" : "disabled"],
  ]);
  const note = accounts.some(({ limits }) => limits.custom) ? "\n* limits of its own" : "";
  return table(["ACCOUNT", "PLAN", "AVAILABLE", "HELD", "REQUESTS/S", "KEYS", "CREATED", "STATE"], rows) + note;
};

const USAGE_PROBLEMS: ReadonlySet<AccountProblem> = new Set([
  ...(["name_invalid", "credits_invalid", "note_invalid", "rate_invalid"] as const),
]);

/** The value of what was done to the account of a name; throws the failure that describes its problem. */
const doneTo = <T>(name: string, result: Result<T, AccountProblem>): T => {
  if (result.ok) return result.value;
  const message = describeAccountProblem(result.error, name);
  throw USAGE_PROBLEMS.has(result.error)
    ? new UsageError(message, result.error)
    : new CommandFailed(message, result.error);
};

const show = (context: DatabaseContext & Terminal, account: Account): void => {
  const view = viewOf(context, account);
  context.print(view, () => tableOf(context, [view]));
};

const NAME = argument("<name>", "name of the account");

const rate = (description: string) =>
  parsed("<n>", description, (text, name) => {
    if (/^\d{1,9}$/.test(text)) return Number(text);
    throw new UsageError(`--${name}: "${text}" is not a whole number.`, "rate_invalid");
  });

const switching = (isEnabled: boolean, help: { readonly description: string; readonly example: string }) =>
  command({
    ...help,
    on: inDatabase,
    args: { name: NAME },
    run: (context, { name }) => show(context, doneTo(name, context.accounts.setEnabled(name, isEnabled))),
  });

const ACCOUNTS = group(
  { description: "Create and manage the accounts that own keys and credits.", example: "accounts list" },
  {
    list: command({
      description: "List all accounts with their plan and credits.",
      example: "accounts list",
      on: inDatabase,
      run(context) {
        const { store, snapshot, print } = context;
        const accounts = snapshot(() => store.listAccounts().map((account) => viewOf(context, account)));
        print({ accounts }, () => tableOf(context, accounts));
      },
    }),
    create: command({
      description: "Create an account with 100 free credits.",
      example: "accounts create acme --plan growth",
      on: inNewDatabase,
      args: { name: NAME },
      options: {
        plan: withDefault(choice("<plan>", PLAN_NAMES, "plan, which sets the rate limit of its keys"), "free"),
      },
      run: (context, { name, plan }) => show(context, doneTo(name, context.accounts.create(name, plan))),
    }),
    show: command({
      description: "Show the plan, credits and limits of an account.",
      example: "accounts show acme",
      on: inDatabase,
      args: { name: NAME },
      run(context, { name }) {
        const view = context.snapshot(() => viewOf(context, accountNamed(context, name)));
        context.print(view, () => tableOf(context, [view]));
      },
    }),
    "set-plan": command({
      description: "Change the plan and the limits of an account, effective from its next request.",
      example: "accounts set-plan acme scale --rate 40 --burst 200",
      on: inDatabase,
      args: { name: NAME, plan: required(choice("<plan>", PLAN_NAMES, "the new plan")) },
      options: {
        rate: rate("requests per second (default: that of the plan)"),
        burst: rate("requests that may come at once (default: two seconds of the rate)"),
      },
      run(context, { name, plan, rate: ratePerSecond = null, burst: rateBurst = null }) {
        show(context, doneTo(name, context.accounts.setPlan(name, plan, { ratePerSecond, rateBurst })));
      },
    }),
    rename: command({
      description: "Rename an account; its keys, credits and history stay.",
      example: "accounts rename acme acme-corp",
      on: inDatabase,
      args: { name: NAME, to: argument("<new-name>", "the new name") },
      run(context, { name, to }) {
        const renamed = context.accounts.rename(name, to);
        const isUnknown = !renamed.ok && renamed.error === "unknown_account";
        show(context, doneTo(isUnknown ? name : to, renamed));
        warnOfSettings(context.io, context.config, name, `Set it to "${to}" and restart the service.`);
      },
    }),
    disable: switching(false, {
      description:
        "Refuse the keys (403 account_disabled) and users of an account at once and pause its monitoring. Running lists finish, and report mail is still accepted.",
      example: "accounts disable acme",
    }),
    enable: switching(true, {
      description: "Accept the keys and users of an account again and resume its monitoring.",
      example: "accounts enable acme",
    }),
    move: ACCOUNT_MOVE,
    take: ACCOUNT_TAKE,
    delete: ACCOUNT_DELETE,
  },
);

const showBalance = ({ print, table }: Terminal, { ledger: _, ...balance }: Statement): void => {
  const { account, available, held, granted, spent } = balance;
  const row = [account, ...[available, held, granted, spent].map(String)];
  print(balance, () => table(["ACCOUNT", "AVAILABLE", "HELD", "GRANTED", "SPENT"], [row]));
};

const signed = (amount: number): string => (amount > 0 ? `+${amount}` : String(amount));

const CREDITS = group(
  { description: "Show and grant credits; verifying an address costs one.", example: "credits show acme" },
  {
    show: command({
      description: "Show the balance of an account and check it against its ledger.",
      example: "credits show acme",
      on: inDatabase,
      args: { name: NAME },
      run(context, { name }) {
        const statement = doneTo(name, context.accounts.statement(name));
        const { available, held, ledger } = statement;
        if (!isBalanced(statement))
          throw new CommandFailed(
            `The ledger adds up to ${ledger.available} available and ${ledger.held} held, but the balance is ${available} and ${held}. Restore a backup and report this.`,
            "ledger_mismatch",
          );
        showBalance(context, statement);
      },
    }),
    grant: command({
      description: "Add credits to an account.",
      example: 'credits grant acme 5000 --note "invoice 17"',
      on: inDatabase,
      args: { name: NAME, credits: argument("<credits>", "number of credits") },
      options: { note: withDefault(option("<text>", "reason, kept in the ledger"), "granted on the command line") },
      run(context, { name, credits, note }) {
        const amount = /^\d+$/.test(credits) ? Number(credits) : Number.NaN;
        showBalance(context, doneTo(name, context.accounts.grantCredits(name, amount, note)));
      },
    }),
    history: command({
      description: "Show the entries of the ledger with their notes, newest first.",
      example: "credits history acme --grants",
      on: inDatabase,
      args: { name: NAME },
      options: { grants: toggle("only grants of credits"), limit: limit(50, 10_000) },
      run(context, { name, grants: grantsOnly, limit: shown }) {
        const { id } = accountNamed(context, name);
        const entries = context.ledger
          .history(id, { grantsOnly, limit: shown })
          .map(({ atMs, kind, available, held, reference, note }) => ({
            at: isoTime(atMs),
            kind,
            available,
            held,
            reference,
            note,
          }));
        const rows = entries.map(({ at, kind, available, held, reference, note }) => [
          ...[tableTime(at), kind, signed(available), signed(held), reference ?? "", note ?? ""],
        ]);
        const headings = ["TIME", "KIND", "AVAILABLE", "HELD", "REFERENCE", "NOTE"];
        context.print({ entries }, () => context.table(headings, rows));
      },
    }),
  },
);

const AUDIT = command({
  description: "Show who changed accounts, keys, credits and monitoring on this server, newest first.",
  example: "audit --account acme --since 2026-01-01",
  on: inDatabase,
  options: {
    account: option("<name>", "only actions on this account"),
    since: time("only actions at or after this time (ISO 8601)"),
    limit: limit(50, 10_000),
  },
  run(context, { account, since: sinceMs, limit: shown }) {
    const { audit, print, table } = context;
    const filters = { accountId: account === undefined ? undefined : accountNamed(context, account).id, sinceMs };
    const entries = audit.list(filters, { before: null, limit: shown }).map(auditView);
    const rows = entries.map(({ at, user, host, pid, action, subject, ...change }) => [
      ...[tableTime(at), user, `${host}:${pid}`, action, subject ?? "", auditChangeText(change)],
    ]);
    print({ entries }, () => table(["TIME", "USER", "HOST:PID", "ACTION", "SUBJECT", "CHANGE"], rows));
  },
});

export const ACCOUNT_COMMANDS = { accounts: ACCOUNTS };
export const CREDIT_COMMANDS = { credits: CREDITS };
export const AUDIT_COMMANDS = { audit: AUDIT };
