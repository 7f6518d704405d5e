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

export interface FirstKeysOptions {
  readonly db: Db;
  readonly service: Pick<Service, "store" | "accounts" | "keys" | "authenticate">;
  readonly dataDir: string;
}

/** Returns when the text is on the disk: a crash must not lose the only copy of the keys. */
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
 * On an empty database, creates an account with a live and a test key in one transaction. The keys are written to a file
 * before the commit, so that `showFirstKeys` can print them even after a crash.
 */
export const createFirstAccount = ({ db, service, dataDir }: FirstKeysOptions): void => {
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
    // Usually there is no such file; a truncated one belongs to a transaction that was not committed.
    return null;
  }
};

/**
 * Prints the keys of the first account if they have not been printed yet, and removes their file. Where standard output is
 * a log, prints only the path of the file, at every start until the operator removes it.
 */
export const showFirstKeys = (
  { service, dataDir }: FirstKeysOptions,
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
    io.out(`The keys of the account "${keys.account}" are in ${path}. Store them in a safe place and remove the file.`);
    return;
  }
  io.out(asJson ? JSON.stringify({ ...keys, url }) : welcomeText(keys, url));
  rmSync(path, { force: true });
};

const curl = (url: string, key: string, email: string): string =>
  `  curl -s '${url}/v1/email-verifications?timeout=60' -H 'Authorization: Bearer ${key}' -d '{"email":"${email}"}'`;

const welcomeText = ({ account, live_key, test_key }: FirstKeys, url: string): string => `
Created the account "${account}" with 100 credits. Its keys are shown only once:

  live key  ${live_key}
  test key  ${test_key}

Verify an address (replace it with a real one):

${curl(url, live_key, "someone@example.com")}

Try the API without network and credits:

${curl(url, test_key, "mailbox_exists@any.example")}
`;
