import { FORM_DEFAULTS, type FormSettings } from "../accounts/form-keys.ts";
import { describeKeyProblem, type IssuedKey, type KeyProblem } from "../accounts/keys.ts";
import type { ApiKey } from "../accounts/store.ts";
import { isoTime, systemClock } from "../foundation/base/clock.ts";
import type { Result } from "../foundation/base/errors.ts";
import { FORM_CHECKS, type FormCheck } from "../foundation/base/form-rules.ts";
import { SCOPES } from "../foundation/http/scopes.ts";
import { argument, choice, command, group, option, parsed, required, type Terminal, time } from "./command.ts";
import { accountNamed, type DatabaseContext, inDatabase, unknownAccount } from "./data-directory.ts";
import { CommandFailed, UsageError } from "./io.ts";
import { tableTime } from "./terminal-text.ts";

const HOUR_MS = 60 * 60 * 1000;
const timeOrNull = (ms: number | null): string | null => (ms === null ? null : isoTime(ms));

const viewOf = ({ store }: Pick<DatabaseContext, "store">, key: ApiKey) => {
  const [current, ...older] = store.listSecrets(key.id);
  const account = store.findAccount(key.accountId);
  const stillValid = older.filter(({ validUntilMs }) => validUntilMs !== null && validUntilMs > systemClock.nowMs());
  return {
    id: key.id,
    account: account?.name ?? null,
    account_disabled: (account?.disabledAtMs ?? null) !== null,
    name: key.name,
    mode: key.mode,
    ending: current?.ending ?? null,
    scopes: key.scopes,
    publishable: key.forms && {
      key: key.forms.key,
      origins: key.forms.origins,
      visitor_per_hour: key.forms.visitorPerHour,
      per_day: key.forms.perDay,
      check: key.forms.check,
    },
    created_at: isoTime(key.createdAtMs),
    last_used_at: timeOrNull(key.lastUsedAtMs),
    expires_at: timeOrNull(key.expiresAtMs),
    revoked_at: timeOrNull(key.revokedAtMs),
    old_secret_valid_until: timeOrNull(stillValid[0]?.validUntilMs ?? null),
  };
};

type KeyView = ReturnType<typeof viewOf>;

const stateOf = ({ revoked_at, expires_at, account_disabled }: KeyView): string => {
  if (revoked_at !== null) return "revoked";
  if (expires_at !== null && Date.parse(expires_at) <= systemClock.nowMs()) return "expired";
  return account_disabled ? "disabled" : "valid";
};

const rowOf = (key: KeyView): string[] => [
  ...[
    key.id,
    key.account ?? "",
    key.name,
    `pw_${key.publishable ? "pub_" : ""}${key.mode}_…${key.ending}`,
    stateOf(key),
  ],
  key.scopes.length === SCOPES.length ? "all" : key.scopes.join(", "),
  ...[tableTime(key.created_at), tableTime(key.expires_at, "never"), tableTime(key.last_used_at, "never")],
];

const USAGE_PROBLEMS: ReadonlySet<KeyProblem> = new Set([
  "name_invalid",
  "scope_invalid",
  "origin_invalid",
  "limit_invalid",
  "time_invalid",
]);

const keyError = (problem: KeyProblem): Error => {
  const message = describeKeyProblem(problem);
  return USAGE_PROBLEMS.has(problem) ? new UsageError(message, problem) : new CommandFailed(message, problem);
};

const done = <T>(result: Result<T, KeyProblem>): T => {
  if (result.ok) return result.value;
  throw keyError(result.error);
};

const showIssued = (context: DatabaseContext & Terminal, issued: IssuedKey): void => {
  const { id, ...rest } = viewOf(context, issued);
  const hint = issued.forms === null ? "The secret is shown only once: store it now." : "Anyone may see it.";
  const text = `${issued.key}\n\nKey ${id}. ${hint}`;
  context.print({ id, key: issued.key, ...rest }, () => text);
};

const listOf = (text: string): string[] => text.split(",").map((part) => part.trim());

const FORM_OPTIONS = {
  origins: option("<list>", "publishable key (pw_pub_…): for sign-up forms on pages of these origins"),
  visitorPerHour: parsed(
    "<number>",
    `publishable key: addresses of one visitor in an hour (default: ${FORM_DEFAULTS.visitorPerHour})`,
    Number,
  ),
  perDay: parsed("<number>", `publishable key: addresses in a day (default: ${FORM_DEFAULTS.perDay})`, Number),
  check: choice(
    "<how>",
    FORM_CHECKS,
    `publishable key: mailbox, or domain to ask no mail server (default: ${FORM_DEFAULTS.check})`,
  ),
};

interface FormOptions {
  readonly origins: string | undefined;
  readonly visitorPerHour: number | undefined;
  readonly perDay: number | undefined;
  readonly check: FormCheck | undefined;
}

/** The settings that were given. */
const formsOf = ({ origins, visitorPerHour, perDay, check }: FormOptions): Partial<FormSettings> => ({
  ...(origins === undefined ? {} : { origins: listOf(origins) }),
  ...(visitorPerHour === undefined ? {} : { visitorPerHour }),
  ...(perDay === undefined ? {} : { perDay }),
  ...(check === undefined ? {} : { check }),
});

const ID = argument("<id>", "id of the key");
const EXAMPLE_ID = "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a52";

const KEYS = group(
  { description: "Create, rotate and revoke API keys.", example: "keys list" },
  {
    list: command({
      description: "List keys without their secrets.",
      example: "keys list --account acme",
      on: inDatabase,
      options: { account: option("<name>", "list only the keys of this account") },
      run(context, { account }) {
        const { store, snapshot, print, table } = context;
        const keys = snapshot(() => {
          const owner = account === undefined ? undefined : accountNamed(context, account);
          return store.listKeys(owner?.id).map((key) => viewOf(context, key));
        });
        const headings = ["ID", "ACCOUNT", "NAME", "KEY", "STATE", "SCOPES", "CREATED", "EXPIRES", "LAST USED"];
        print({ keys }, () => table(headings, keys.map(rowOf)));
      },
    }),
    create: command({
      description: "Create a key and print its secret once.",
      example: "keys create --account acme --mode live --name shop --scopes verifications:read,verifications:write",
      on: inDatabase,
      options: {
        account: required(option("<name>", "account that owns the key")),
        mode: required(
          choice("<mode>", ["live", "test"], "live: real checks; test: fixed results, no network, no credits"),
        ),
        name: option("<name>", "name to recognize the key by"),
        scopes: option("<list>", `comma-separated list of ${SCOPES.join(", ")} (default: all)`),
        ...FORM_OPTIONS,
        expires: time("when the key stops working (default: never)", "2027-01-31 or 2027-01-31T12:00:00Z"),
      },
      run(context, { account, mode, name, scopes, expires: expiresAtMs, ...given }) {
        const { origins, ...limits } = formsOf(given);
        if (origins === undefined && Object.keys(limits).length > 0)
          throw new UsageError("Limits and --check belong to a publishable key: name its --origins.");
        if (origins !== undefined && scopes !== undefined)
          throw new UsageError("A publishable key has no --scopes: it verifies addresses and nothing else.");
        const issued = context.keys.create({
          account,
          mode,
          ...(name === undefined ? {} : { name }),
          ...(scopes === undefined ? {} : { scopes: listOf(scopes) }),
          ...(origins === undefined ? {} : { forms: { origins, ...limits } }),
          ...(expiresAtMs === undefined ? {} : { expiresAtMs }),
        });
        if (!issued.ok) throw issued.error === "unknown_account" ? unknownAccount(account) : keyError(issued.error);
        showIssued(context, issued.value);
      },
    }),
    change: command({
      description: "Change a publishable key.",
      example: `keys change ${EXAMPLE_ID} --origins https://www.example.com,https://shop.example.com --per-day 5000`,
      on: inDatabase,
      args: { id: ID },
      options: FORM_OPTIONS,
      run(context, { id, ...given }) {
        const changes = formsOf(given);
        if (Object.keys(changes).length === 0) throw new UsageError("Name what to change, such as --per-day 5000.");
        const changed = done(context.keys.changeForms(id, changes));
        context.print(viewOf(context, changed), () => `Key ${id} is changed.`);
      },
    }),
    rotate: command({
      description: "Create a new secret for a key; the old secret keeps working for a while.",
      example: `keys rotate ${EXAMPLE_ID} --grace-hours 48`,
      on: inDatabase,
      args: { id: ID },
      options: {
        graceHours: parsed("<hours>", "how long the old secret keeps working (default: 24)", (text) => {
          if (/^\d{1,5}(\.\d+)?$/.test(text)) return Number(text) * HOUR_MS;
          throw new UsageError(`--grace-hours: "${text}" is not a number of hours.`);
        }),
      },
      run: (context, { id, graceHours }) => showIssued(context, done(context.keys.rotate(id, graceHours))),
    }),
    revoke: command({
      description: "Revoke a key immediately and permanently.",
      example: `keys revoke ${EXAMPLE_ID}`,
      on: inDatabase,
      args: { id: ID },
      run(context, { id }) {
        const revoked = done(context.keys.revoke(id));
        context.print(viewOf(context, revoked), () => `Key ${id} is revoked.`);
      },
    }),
  },
);

export const KEY_COMMANDS = { keys: KEYS };
