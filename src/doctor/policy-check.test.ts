import { afterEach, expect, test } from "bun:test";
import { createServer, type Server } from "node:net";
import { systemClock } from "../foundation/base/clock.ts";
import { createTestClock } from "../testing/clock.ts";
import { silentLog } from "../testing/silent-log.ts";
import { PolicyListener } from "../verify/policy/policy-listener.ts";
import type { StoredAccount } from "./accounts-check.ts";
import { checkPolicy } from "./policy-check.ts";

const ends: Array<() => void> = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

const ONE = [{ name: "Example", isDisabled: 0 }];
const NOWHERE = { address: "127.0.0.1", port: 1 };

const startService = async (address = "127.0.0.1") => {
  const listener = new PolicyListener({
    ...{ clock: createTestClock(), log: silentLog, networks: [], answered: () => undefined, refused: () => undefined },
    policy: {
      answer() {
        throw new Error("a recipient was looked up");
      },
    },
  });
  ends.push(() => listener.close());
  const opened = await listener.listen({ address, port: 0 });
  if (!opened.ok || "path" in opened.value) throw new Error("not listening");
  return opened.value;
};

const check = (
  config: Partial<Parameters<typeof checkPolicy>[0]["config"]>,
  accounts: readonly StoredAccount[] | null = ONE,
) =>
  checkPolicy({
    config: { policyListen: NOWHERE, policyNetworks: [], policyAccount: null, ...config },
    clock: systemClock,
    readAccounts: () => accounts,
  });

test("without an address there is nothing to say", async () => {
  expect(await check({ policyListen: null })).toEqual([]);
});

test("a service that answers is ok, and no recipient is looked up", async () => {
  const at = await startService();
  expect(await check({ policyListen: at, policyAccount: "Example" })).toMatchObject([{ check: "policy", state: "ok" }]);
});

test("one that listens for other machines, and may answer none, is a warning", async () => {
  const at = await startService("0.0.0.0");
  const [found] = await check({ policyListen: at });
  expect(found).toMatchObject({ state: "warn", message: expect.stringContaining("POSTWARDEN_POLICY_NETWORKS") });
  expect(await check({ policyListen: at, policyNetworks: ["192.0.2.0/24"] })).toMatchObject([{ state: "ok" }]);
});

test("nobody listens", async () => {
  expect(await check({})).toMatchObject([
    { state: "warn", message: expect.stringContaining("Until then mail flows.") },
  ]);
});

test("another program listens", async () => {
  const server: Server = createServer((socket) => void socket.end("220 mail.example ESMTP\r\n"));
  ends.push(() => server.close());
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const [found] = await check({ policyListen: { address: "127.0.0.1", port } });
  expect(found?.message).toContain("another program listens there");
});

test.each([
  ["no account", null, [], "There is no account."],
  ["an unknown name", "Other", ONE, 'There is no account "Other".'],
  ["several", null, [...ONE, { name: "Two", isDisabled: 0 }], "There are several accounts."],
  ["a disabled one", "Example", [{ name: "Example", isDisabled: 1 }], 'The account "Example" is disabled.'],
])("%s: fails, and says that every recipient passes", async (_, policyAccount, accounts, text) => {
  const [found] = await check({ policyAccount }, accounts);
  expect(found?.state).toBe("fail");
  expect(found?.message).toContain(text);
  expect(found?.message).toEndWith("Until then every recipient passes.");
});

test("a database that cannot be read is no problem of the policy service", async () => {
  expect(await check({}, null)).toMatchObject([{ state: "warn" }]);
});
