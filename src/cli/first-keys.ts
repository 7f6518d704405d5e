import { closeSync, fsyncSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import type { Service } from "../compose.ts";
import type { Db } from "../db/open.ts";
import { CommandFailed, type Io } from "./io.ts";

const ACCOUNT = "default";
const FILE_NAME = "first-keys.json";

const firstKeysSchema = z.object({ account: z.string(), live_key: z.string(), test_key: z.string() });
type FirstKeys = z.output<typeof firstKeysSchema>;

export interface FirstKeysDeps {
  readonly db: Db;
  readonly service: Pick<Service, "store" | "accounts" | "keys" | "authenticate">;
  readonly dataDir: string;
}

/** On the disk when it returns: a crash right afterwards must not take the only copy of the keys with it. */
const writeDurably = (path: string, text: string): void => {
  rmSync(path, { force: true });
  const file = openSync(path, "wx", 0o600);
  try {
    writeSync(file, text);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
};

/**
 * On an empty database: an account with a live and a test key, all in one transaction. The keys are written to a file
 * before it is committed, so that they can be shown whatever happens in between; `showFirstKeys` does.
 */
export const createFirstAccount = ({ db, service, dataDir }: FirstKeysDeps): void => {
  const { store, accounts, keys } = service;
  db.transact(() => {
    if (store.hasAccounts()) return;
    const account = accounts.create(ACCOUNT);
    const live = keys.create({ account: ACCOUNT, mode: "live", name: "first live key" });
    const test = keys.create({ account: ACCOUNT, mode: "test", name: "first test key" });
    if (!account.ok || !live.ok || !test.ok) throw new CommandFailed("The first account could not be created.");
    const shown: FirstKeys = { account: ACCOUNT, live_key: live.value.key, test_key: test.value.key };
    writeDurably(join(dataDir, FILE_NAME), `${JSON.stringify(shown)}\n`);
  });
};

const readKeys = (path: string): FirstKeys | null => {
  try {
    const parsed = firstKeysSchema.safeParse(JSON.parse(readFileSync(path, "utf8")));
    return parsed.success ? parsed.data : null;
  } catch {
    // No such file at nearly every start; one that was cut off belongs to a transaction that was never committed.
    return null;
  }
};

/**
 * Prints the keys of the first account where they have not been printed yet, and removes their file. Where standard output
 * is a log, keys do not belong there: it prints the path of the file, at every start until the operator removes it.
 */
export const showFirstKeys = (
  { service, dataDir }: FirstKeysDeps,
  { io, url, asJson }: { readonly io: Io; readonly url: string; readonly asJson: boolean },
): void => {
  const path = join(dataDir, FILE_NAME);
  const keys = readKeys(path);
  if (keys === null) return;
  const isValid = [keys.live_key, keys.test_key].some((key) => service.authenticate(`Bearer ${key}`) !== undefined);
  if (!isValid) {
    rmSync(path, { force: true });
    return;
  }
  if (!asJson && io.stdoutKind === "log") {
    io.out(`The keys of the account "${keys.account}" are in ${path}. Store them elsewhere and remove the file.`);
    return;
  }
  io.out(asJson ? JSON.stringify({ ...keys, url }) : welcomeText(keys, url));
  rmSync(path, { force: true });
};

const curl = (url: string, key: string, email: string): string =>
  `  curl -s '${url}/v1/email-verifications?timeout=60' -H 'Authorization: Bearer ${key}' -d '{"email":"${email}"}'`;

const welcomeText = ({ account, live_key, test_key }: FirstKeys, url: string): string => `
A new account "${account}" with 100 credits was created. Its keys are shown this once:

  live key  ${live_key}
  test key  ${test_key}

Verify an address (put in a real one):

${curl(url, live_key, "someone@example.com")}

Try the interface without any network and without credits:

${curl(url, test_key, "mailbox_exists@any.example")}
`;
