import type { Command } from "commander";
import { Option } from "commander";
import { describeKeyProblem, type IssuedKey, type KeyProblem } from "../accounts/keys.ts";
import type { AccountStore, ApiKey } from "../accounts/store.ts";
import { isoTime, systemClock } from "../foundation/base/clock.ts";
import type { KeyMode } from "../foundation/base/secrets.ts";
import { SCOPES } from "../foundation/http/scopes.ts";
import { addCommand, addGroup } from "./command.ts";
import { CommandFailed, type Io, print, UsageError } from "./io.ts";
import { table, tableTime } from "./terminal-text.ts";
import { administer, unknownAccount } from "./data-directory.ts";

const HOUR_MS = 60 * 60 * 1000;
const timeOrNull = (ms: number | null): string | null => (ms === null ? null : isoTime(ms));

const keyView = (store: AccountStore, key: ApiKey) => {
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
    created_at: isoTime(key.createdAtMs),
    last_used_at: timeOrNull(key.lastUsedAtMs),
    expires_at: timeOrNull(key.expiresAtMs),
    revoked_at: timeOrNull(key.revokedAtMs),
    old_secret_valid_until: timeOrNull(stillValid[0]?.validUntilMs ?? null),
  };
};

type KeyView = ReturnType<typeof keyView>;

const stateOf = ({ revoked_at, expires_at, account_disabled }: KeyView): string => {
  if (revoked_at !== null) return "revoked";
  return expires_at !== null && Date.parse(expires_at) <= systemClock.nowMs()
    ? "expired"
    : account_disabled
      ? "disabled"
      : "valid";
};

const rowOf = (key: KeyView): string[] => [
  key.id,
  key.account ?? "",
  key.name,
  `pw_${key.mode}_…${key.ending}`,
  stateOf(key),
  key.scopes.length === SCOPES.length ? "all" : key.scopes.join(", "),
  tableTime(key.created_at),
  tableTime(key.expires_at, "never"),
  tableTime(key.last_used_at, "never"),
];

const USAGE_PROBLEMS: ReadonlySet<KeyProblem> = new Set(["name_invalid", "scope_invalid", "time_invalid"]);

const keyError = (problem: KeyProblem): Error => {
  const message = describeKeyProblem(problem);
  return USAGE_PROBLEMS.has(problem) ? new UsageError(message, problem) : new CommandFailed(message, problem);
};

const readExpiry = (text: string | undefined): number | undefined => {
  if (text === undefined) return undefined;
  const atMs = Date.parse(text);
  if (Number.isNaN(atMs))
    throw new UsageError(`--expires: "${text}" is not a time such as 2027-01-31 or 2027-01-31T12:00:00Z.`);
  return atMs;
};

const readHours = (text: string | undefined): number | undefined => {
  if (text === undefined) return undefined;
  if (!/^\d{1,5}(\.\d+)?$/.test(text)) throw new UsageError(`--grace-hours: "${text}" is not a number of hours.`);
  return Number(text) * HOUR_MS;
};

const printIssued = (io: Io, json: boolean | undefined, store: AccountStore, issued: IssuedKey): void => {
  const { id, ...rest } = keyView(store, issued);
  print(
    io,
    json,
    { id, key: issued.key, ...rest },
    () => `${issued.key}\n\nKey ${id}. The secret is shown only once: store it now.`,
  );
};

/** `keys list | create | rotate | revoke` */
export const addKeyCommands = (program: Command, io: Io): void => {
  const group = addGroup(program, "keys", {
    description: "Create, rotate and revoke API keys.",
    example: "keys list",
  });
  addKeyList(group, io);
  addKeyCreate(group, io);
  addKeyRotate(group, io);
  addKeyRevoke(group, io);
};

const addKeyList = (group: Command, io: Io): Command =>
  addCommand(group, "list", {
    description: "List keys without their secrets.",
    example: "keys list --account acme",
  })
    .option("--account <name>", "list only the keys of this account")
    .action(({ account, json }: { account?: string; json?: boolean }) =>
      administer(io, ({ store, snapshot }) => {
        const keys = snapshot(() => {
          const owner = account === undefined ? undefined : store.findAccountByName(account);
          if (account !== undefined && owner === undefined) throw unknownAccount(account);
          return store.listKeys(owner?.id).map((key) => keyView(store, key));
        });
        print(io, json, { keys }, () =>
          table(
            ["ID", "ACCOUNT", "NAME", "KEY", "STATE", "SCOPES", "CREATED", "EXPIRES", "LAST USED"],
            keys.map(rowOf),
            io.columns,
          ),
        );
      }),
    );

interface CreateOptions {
  readonly account: string;
  readonly mode: KeyMode;
  readonly name?: string;
  readonly scopes?: string;
  readonly expires?: string;
  readonly json?: boolean;
}

const addKeyCreate = (group: Command, io: Io): Command =>
  addCommand(group, "create", {
    description: "Create a key and print its secret once.",
    example: "keys create --account acme --mode live --name shop --scopes verifications:read,verifications:write",
  })
    .requiredOption("--account <name>", "account that owns the key")
    .addOption(
      new Option("--mode <mode>", "live: real checks; test: fixed results, no network, no credits")
        .choices(["live", "test"])
        .makeOptionMandatory(),
    )
    .option("--name <name>", "name to recognize the key by")
    .option("--scopes <list>", `comma-separated list of ${SCOPES.join(", ")} (default: all)`)
    .option("--expires <time>", "when the key stops working (default: never)")
    .action(({ account, mode, name, scopes, expires, json }: CreateOptions) =>
      administer(io, ({ keys, store }) => {
        const expiresAtMs = readExpiry(expires);
        const issued = keys.create({
          account,
          mode,
          ...(name === undefined ? {} : { name }),
          ...(scopes === undefined ? {} : { scopes: scopes.split(",").map((scope) => scope.trim()) }),
          ...(expiresAtMs === undefined ? {} : { expiresAtMs }),
        });
        if (!issued.ok) throw issued.error === "unknown_account" ? unknownAccount(account) : keyError(issued.error);
        printIssued(io, json, store, issued.value);
      }),
    );

const addKeyRotate = (group: Command, io: Io): Command =>
  addCommand(group, "rotate", {
    description: "Create a new secret for a key; the old secret keeps working for a while.",
    example: "keys rotate 019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a52 --grace-hours 48",
  })
    .argument("<id>", "id of the key")
    .option("--grace-hours <hours>", "how long the old secret keeps working (default: 24)")
    .action((id: string, { graceHours, json }: { graceHours?: string; json?: boolean }) =>
      administer(io, ({ keys, store }) => {
        const issued = keys.rotate(id, readHours(graceHours));
        if (!issued.ok) throw keyError(issued.error);
        printIssued(io, json, store, issued.value);
      }),
    );

const addKeyRevoke = (group: Command, io: Io): Command =>
  addCommand(group, "revoke", {
    description: "Revoke a key immediately and permanently.",
    example: "keys revoke 019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a52",
  })
    .argument("<id>", "id of the key")
    .action((id: string, { json }) =>
      administer(io, ({ keys, store }) => {
        const revoked = keys.revoke(id);
        if (!revoked.ok) throw keyError(revoked.error);
        print(io, json, keyView(store, revoked.value), () => `Key ${id} is revoked.`);
      }),
    );
