import { expect, test } from "bun:test";
import { checkMailboxAccounts, readAccounts, type StoredAccount } from "./accounts-check.ts";

const ONE: readonly StoredAccount[] = [{ name: "Example", isDisabled: 0 }];
const TWO: readonly StoredAccount[] = [...ONE, { name: "Two", isDisabled: 0 }];
const of = (account: string | null) => ({ account });

const check = (
  config: Parameters<typeof checkMailboxAccounts>[0]["config"],
  accounts: readonly StoredAccount[] | null,
) => checkMailboxAccounts({ config, readAccounts: () => accounts });

test("without a mailbox, or without a database, there is nothing to say", () => {
  expect(check({ imap: null, bounceImap: null }, TWO)).toEqual([]);
  expect(check({ imap: of(null), bounceImap: of("x") }, null)).toEqual([]);
  expect(readAccounts("/nowhere/postwarden.db")).toBeNull();
});

test("each mailbox has an account: the named one, or the only one", () => {
  const found = check({ imap: of(null), bounceImap: of("Example") }, ONE);
  expect(found.map(({ check: name, state }) => [name, state])).toEqual([
    ["report_mailbox", "ok"],
    ["bounce_mailbox", "ok"],
  ]);
  expect(found[0]?.message).toContain('belongs to the account "Example". `postwarden dmarc imap-check` logs in.');
  expect(found[1]?.message).toContain("`postwarden bounces imap-check`");
});

test.each([
  ["no account", null, [], "There is no account. Create one"],
  ["several", null, TWO, "There are several accounts. Set POSTWARDEN_BOUNCE_IMAP_ACCOUNT to the name of one."],
  ["an unknown name", "Other", TWO, 'POSTWARDEN_BOUNCE_IMAP_ACCOUNT: There is no account "Other".'],
])("%s: fails, and says that nothing is fetched", (_, account, accounts, text) => {
  const [found, ...others] = check({ imap: null, bounceImap: of(account) }, accounts);
  expect(others).toEqual([]);
  expect([found?.check, found?.state]).toEqual(["bounce_mailbox", "fail"]);
  expect(found?.message).toContain(text);
  expect(found?.message).toEndWith("Until then nothing is fetched from the mailbox.");
});
