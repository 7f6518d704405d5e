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
 * before the commit, so that `showFirstKeys` can print them even after a crash.
 */
export const createFirstAccount = ({ db, accounts: slice, dataDir, url }: FirstKeysOptions): void => {
  const { store, accounts, keys, setupLinks } = slice;
  db.transact((tx) => {
    if (store.hasAccounts()) return;
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

/** The link for the first user, under the present URL; null when it was used or has expired. */
const openLink = ({ setup_url }: FirstKeys, { accounts, url }: FirstKeysOptions): string | null => {
  const token = setup_url?.split("/").at(-1) ?? "";
  return accounts.setupLinks.find(token).ok ? setupUrl(url, token) : null;
};

/**
 * Prints the keys and the link of the first account if they have not been printed yet, and returns what removes their file. Where standard
 * output is a log, prints only the path of the file, at every start until the operator removes it.
 */
export const showFirstKeys = (
  options: FirstKeysOptions,
  { io, asJson }: { readonly io: Io; readonly asJson: boolean },
): (() => void) => {
  const { accounts, dataDir, url } = options;
  const path = join(dataDir, FILE_NAME);
  const keys = readKeys(path);
  if (keys === null) return () => undefined;
  const remove = () => rmSync(path, { force: true });
  const isValid = [keys.live_key, keys.test_key].some((key) => accounts.authenticate(`Bearer ${key}`) !== undefined);
  if (!isValid) return remove;
  if (!asJson && io.stdoutKind === "log") {
    io.out(
      `The keys of the account "${keys.account}" and the link to its dashboard are in ${path}. Store them in a safe place and remove the file.`,
    );
    return () => undefined;
  }
  const { setup_url: _, ...shown } = keys;
  const link = openLink(keys, options);
  io.out(asJson ? JSON.stringify({ ...shown, setup_url: link, url }) : welcomeText(keys, url, link));
  return remove;
};

const curl = (url: string, key: string, email: string): string =>
  `  curl -s '${url}/v1/email-verifications?timeout=60' -H 'Authorization: Bearer ${key}' -d '{"email":"${email}"}'`;

const linkText = (link: string): string => `
Open the dashboard and choose a password. The link works once, within 7 days:

  ${link}
`;

const welcomeText = ({ account, live_key, test_key }: FirstKeys, url: string, link: string | null): string => `
Created the account "${account}" with 100 credits. Its keys are shown only once:

  live key  ${live_key}
  test key  ${test_key}
${link === null ? "" : linkText(link)}
Verify an address (replace it with a real one):

${curl(url, live_key, "someone@example.com")}

Try the API without network and credits:

${curl(url, test_key, "mailbox_exists@any.example")}
`;
