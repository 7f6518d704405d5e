import { expect, test } from "bun:test";
import { ClientAddresses } from "../foundation/http/client-addresses.ts";
import { createApps } from "../testing/app.ts";
import { createCallers } from "./callers.ts";

const start = createApps();

/** Requests of clients at `address`, and whom they count for. */
const setUp = () => {
  const app = start();
  const { accounts } = app.service;
  let address = "198.51.100.7";
  const clients = new ClientAddresses([]);
  clients.attach({ requestIP: () => ({ address, port: 1, family: "IPv4" }) });
  const callerOf = createCallers(app.service, clients);
  const of = (headers: Record<string, string>, from = "198.51.100.7") => {
    address = from;
    return callerOf(new Request("http://localhost/v1/account", { headers }));
  };
  const keyOf = (account: string) => {
    const issued = accounts.keys.create({ account, mode: "live" });
    if (!issued.ok) throw new Error(issued.error);
    return { authorization: `Bearer ${issued.value.key}` };
  };
  return { app, of, keyOf };
};

test("all keys of an account are one caller, wherever they are used; another account is another", () => {
  const { app, of, keyOf } = setUp();
  const [acme, other] = [app.newAccount("acme", "scale"), app.newAccount("other", "scale")];
  expect([of(keyOf("acme")), of(keyOf("acme"), "203.0.113.9"), of(keyOf("other"))]).toEqual([acme, acme, other]);
});

test("all sessions of a user are one caller, over HTTP and HTTPS", () => {
  const { app, of } = setUp();
  const accountId = app.newAccount("acme", "scale");
  const { users, sessions } = app.service.accounts;
  const userOf = (email: string) => {
    const invited = users.invite({ accountId, email, role: "member", isOperator: false, tag: null }, null);
    if (!invited.ok) throw new Error(JSON.stringify(invited.error));
    return invited.value.user.id;
  };
  const cookieOf = (userId: string, isSecure: boolean) => {
    const client = { address: "192.0.2.1", userAgent: "test", isSecure };
    const token = app.db.transact((tx) => sessions.open(tx, userId, client));
    return { cookie: `pw_theme=dark; ${isSecure ? "__Host-" : ""}pw_session=${token}` };
  };
  const [ada, bob] = [userOf("ada@acme.example"), userOf("bob@acme.example")];
  const callers = [cookieOf(ada, false), cookieOf(ada, true), cookieOf(bob, false)].map((headers) => of(headers));
  expect(callers).toEqual([ada, ada, bob]);
});

test("what no key and no session confirms counts for the network of the client, whatever it claims", () => {
  const { app, of, keyOf } = setUp();
  app.newAccount("acme", "scale");
  const disabled = keyOf("acme");
  app.service.accounts.accounts.setEnabled("acme", false);
  const claims = [
    {},
    disabled,
    { authorization: `Bearer pw_live_${"a".repeat(32)}` },
    { authorization: "Basic YWRhOnNlY3JldA==" },
    { cookie: `pw_session=${"a".repeat(43)}` },
    { cookie: "pw_session=1; pw_session=2" },
  ];
  expect(new Set(claims.map((headers) => of(headers)))).toEqual(new Set(["198.51.100.0/24"]));
  expect(of({}, "2001:db8:1:2::3")).toBe("2001:db8:1::/48");
});

test("without a server that names the client, it is unknown", () => {
  const app = start();
  expect(createCallers(app.service, new ClientAddresses([]))(new Request("http://localhost/"))).toBeNull();
});
