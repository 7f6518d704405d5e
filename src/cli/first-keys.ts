import { closeSync, fsyncSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { setupUrl } from "../accounts/setup-links.ts";
import type { AccountsSlice } from "../accounts/open.ts";
import type { Db } from "../foundation/db/open.ts";
import { CommandFailed, type Io } from "./io.ts";

const ACCOUNT = "default";
const FILE_NAME = "first-keys.json";

const firstKeysSchema = z.object({
  ...{ account: z.string(), live_key: z.string(), test_key: z.string() },
  /** Missing in files of versions without a dashboard. */
  setup_url: z.url().optional(),
});
type FirstKeys = z.output<typeof firstKeysSchema>;

export interface FirstKeysOptions {
  readonly db: Db;
  readonly accounts: AccountsSlice;
  readonly dataDir: string;
  /** Where the service is reached now. */
  readonly url: string;
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
 * On an empty database, creates an account with a live key, a test key and the link for the first user in one transaction. They are written to a file
 * before the commit, so that they can be printed even after a crash. Null where there are accounts.
 */
const createFirstAccount = ({ db, accounts: slice, dataDir, url }: FirstKeysOptions): FirstKeys | null => {
  const { store, accounts, keys, setupLinks } = slice;
  return db.transact((tx) => {
    if (store.hasAccounts()) return null;
    const account = accounts.create(ACCOUNT);
    const live = keys.create({ account: ACCOUNT, mode: "live", name: "first live key" });
    const test = keys.create({ account: ACCOUNT, mode: "test", name: "first test key" });
    if (!account.ok || !live.ok || !test.ok) throw new CommandFailed("The first account could not be created.");
    const link = setupLinks.create(tx, { accountId: account.value.id, userId: null });
    const shown: FirstKeys = {
      ...{ account: ACCOUNT, live_key: live.value.key, test_key: test.value.key },
      setup_url: setupUrl(url, link.token),
    };
    writeDurably(join(dataDir, FILE_NAME), `${JSON.stringify(shown)}\n`);
    return shown;
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

/** The keys that were not printed yet, with the link under the present URL unless it was used or has expired; null when they do not work any longer. */
const readUnshown = ({ accounts, dataDir, url }: FirstKeysOptions): FirstKeys | null => {
  const keys = readKeys(join(dataDir, FILE_NAME));
  if (keys === null) return null;
  const isValid = [keys.live_key, keys.test_key].some((key) => accounts.authenticate(`Bearer ${key}`) !== undefined);
  if (!isValid) return null;
  const { setup_url: link, ...others } = keys;
  const token = link?.split("/").at(-1) ?? "";
  return accounts.setupLinks.find(token).ok ? { ...others, setup_url: setupUrl(url, token) } : others;
};

/**
 * Creates the first account of an empty database, and prints its keys and the link if they have not been printed yet. Returns what removes
 * their file. Where standard output is a log, prints only the path of the file, at every start until the operator removes it.
 */
export const showFirstKeys = (
  options: FirstKeysOptions,
  { io, asJson }: { readonly io: Io; readonly asJson: boolean },
): (() => void) => {
  const path = join(options.dataDir, FILE_NAME);
  const keys = createFirstAccount(options) ?? readUnshown(options);
  const remove = () => rmSync(path, { force: true });
  if (keys === null) return remove;
  if (!asJson && io.stdoutKind === "log") {
    io.out(
      `The keys of the account "${keys.account}" and the link to its dashboard are in ${path}. Store them in a safe place and remove the file.`,
    );
    return () => undefined;
  }
  io.out(
    asJson
      ? JSON.stringify({ ...keys, setup_url: keys.setup_url ?? null, url: options.url })
      : welcomeText(keys, options.url),
  );
  return remove;
};

const curl = (url: string, key: string, email: string): string =>
  `  curl -s '${url}/v1/email-verifications?timeout=60' -H 'Authorization: Bearer ${key}' -d '{"email":"${email}"}'`;

const linkText = (link: string): string => `
Open the dashboard and choose a password. The link works once, within 7 days:

  ${link}
`;

const welcomeText = ({ account, live_key, test_key, setup_url }: FirstKeys, url: string): string => `
Created the account "${account}" with 100 credits. Its keys are shown only once:

  live key  ${live_key}
  test key  ${test_key}
${setup_url === undefined ? "" : linkText(setup_url)}
Verify an address (replace it with a real one):

${curl(url, live_key, "someone@example.com")}

Try the API without network and credits:

${curl(url, test_key, "mailbox_exists@any.example")}
`;
