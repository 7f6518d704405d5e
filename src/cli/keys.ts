import type { Command } from "commander";
import { Option } from "commander";
import { describeKeyProblem, type IssuedKey, type KeyProblem } from "../accounts/keys.ts";
import type { AccountStore, ApiKey } from "../accounts/store.ts";
import { isoTime, systemClock } from "../base/clock.ts";
import { SCOPES } from "../http/scopes.ts";
import { CommandFailed, type Io, print, UsageError } from "./io.ts";
import { table } from "./terminal-text.ts";
import { administer } from "./data-directory.ts";

const HOUR_MS = 60 * 60 * 1000;
const timeOrNull = (ms: number | null): string | null => (ms === null ? null : isoTime(ms));

const shown = (store: AccountStore, key: ApiKey) => {
  const [current, ...older] = store.listSecrets(key.id);
  const stillValid = older.filter(({ validUntilMs }) => validUntilMs !== null && validUntilMs > systemClock.nowMs());
  return {
    id: key.id,
    account: store.findAccount(key.accountId)?.name ?? null,
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

const stateOf = ({ revoked_at, expires_at }: ReturnType<typeof shown>): string => {
  if (revoked_at !== null) return "revoked";
  return expires_at !== null && Date.parse(expires_at) <= systemClock.nowMs() ? "expired" : "valid";
};

const rowOf = (key: ReturnType<typeof shown>): string[] => [
  key.id,
  key.account ?? "",
  key.name,
  `pw_${key.mode}_…${key.ending}`,
  stateOf(key),
  key.scopes.length === SCOPES.length ? "all" : key.scopes.join(","),
  key.last_used_at ?? "never",
];

const USAGE_PROBLEMS: ReadonlySet<KeyProblem> = new Set(["name_invalid", "scope_invalid", "time_invalid"]);

const failed = (problem: KeyProblem): Error => {
  const message = describeKeyProblem(problem);
  return USAGE_PROBLEMS.has(problem) ? new UsageError(message, problem) : new CommandFailed(message, problem);
};

const readExpiry = (text: string | undefined): number | undefined => {
  if (text === undefined) return undefined;
  const atMs = Date.parse(text);
  if (Number.isNaN(atMs))
    throw new UsageError(`--expires: "${text}" is not a time. Write it as 2027-01-31 or 2027-01-31T12:00:00Z.`);
  return atMs;
};

const readHours = (text: string | undefined): number | undefined => {
  if (text === undefined) return undefined;
  if (!/^\d{1,5}(\.\d+)?$/.test(text)) throw new UsageError(`--grace-hours: "${text}" is not a number of hours.`);
  return Number(text) * HOUR_MS;
};

/** `keys list | create | rotate | revoke` */
export const addKeyCommands = (program: Command, io: Io): void => {
  const group = program.command("keys").description("API keys: made, replaced and ended here, and only here");

  const printIssued = (store: AccountStore, issued: IssuedKey, json: boolean | undefined): void => {
    const { id, ...rest } = shown(store, issued);
    print(
      io,
      json,
      { id, key: issued.key, ...rest },
      () => `${issued.key}\n\nKey ${id}. It is shown this once; store it now.`,
    );
  };

  group
    .command("list")
    .description("all keys, without their secrets")
    .option("--account <name>", "only those of this account")
    .option("--json", "print JSON")
    .action(({ account, json }: { account?: string; json?: boolean }) =>
      administer(io, ({ store, snapshot }) => {
        const keys = snapshot(() => {
          const owner = account === undefined ? undefined : store.findAccountByName(account);
          if (account !== undefined && owner === undefined) throw failed("unknown_account");
          return store.listKeys(owner?.id).map((key) => shown(store, key));
        });
        print(io, json, { keys }, () =>
          table(["ID", "ACCOUNT", "NAME", "KEY", "STATE", "SCOPES", "LAST USED"], keys.map(rowOf)),
        );
      }),
    );

  group
    .command("create")
    .description("a new key; its secret is shown once")
    .requiredOption("--account <name>", "the account it belongs to")
    .addOption(
      new Option("--mode <mode>", "live: real checks; test: fixtures, no credits")
        .choices(["live", "test"])
        .makeOptionMandatory(),
    )
    .option("--name <name>", "to tell it from others")
    .option("--scopes <list>", `comma list of ${SCOPES.join(", ")} (default: all)`)
    .option("--expires <time>", "when it stops working (default: never)")
    .option("--json", "print JSON")
    .action(
      (options: {
        account: string;
        mode: "live" | "test";
        name?: string;
        scopes?: string;
        expires?: string;
        json?: boolean;
      }) =>
        administer(io, ({ keys, store }) => {
          const { account, mode, name, scopes, json } = options;
          const expiresAtMs = readExpiry(options.expires);
          const issued = keys.create({
            account,
            mode,
            ...(name === undefined ? {} : { name }),
            ...(scopes === undefined ? {} : { scopes: scopes.split(",").map((scope) => scope.trim()) }),
            ...(expiresAtMs === undefined ? {} : { expiresAtMs }),
          });
          if (!issued.ok) throw failed(issued.error);
          printIssued(store, issued.value, json);
        }),
    );

  group
    .command("rotate")
    .description("a new secret for the same key; the old one goes on for a while")
    .argument("<id>", "the key's id")
    .option("--grace-hours <hours>", "how long the old secret still works (default: 24)")
    .option("--json", "print JSON")
    .action((id: string, { graceHours, json }: { graceHours?: string; json?: boolean }) =>
      administer(io, ({ keys, store }) => {
        const issued = keys.rotate(id, readHours(graceHours));
        if (!issued.ok) throw failed(issued.error);
        printIssued(store, issued.value, json);
      }),
    );

  group
    .command("revoke")
    .description("end a key, at once and for good")
    .argument("<id>", "the key's id")
    .option("--json", "print JSON")
    .action((id: string, { json }) =>
      administer(io, ({ keys, store }) => {
        const revoked = keys.revoke(id);
        if (!revoked.ok) throw failed(revoked.error);
        print(io, json, shown(store, revoked.value), () => `Key ${id} is revoked.`);
      }),
    );
};
