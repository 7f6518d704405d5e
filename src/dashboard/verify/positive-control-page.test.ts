import { expect, test } from "bun:test";
import { createApps } from "../../testing/app.ts";
import { signIn } from "../../testing/dashboard.ts";
import { createStubs } from "../../testing/smtp-dial.ts";

const start = createApps();
const startStub = createStubs();

test("the page of a verification names the accepted recipient that shows what a policy code means", async () => {
  const stub = startStub({
    rcpt: (address) => (address.startsWith("postmaster@") ? "250 2.1.5 Ok" : "550 5.7.1 No such user!"),
  });
  const zone = {
    "shop.example.com": { MX: [[10, "mx.example.com"]] },
    "mx.example.com": { A: ["127.0.0.1"] },
  } as const;
  const visitor = await signIn(start({ zone, stub }));
  const shown = await visitor.submit("/verify", { email: "bert@shop.example.com" });
  expect(shown.text).toContain("The server says that this mailbox does not exist.");
  expect(shown.text).toContain(", and another recipient of the domain was accepted.");
  expect(shown.text).toContain("The server accepts postmaster at the domain from the same address of ours");
});

test("and an address as MX as what it is", async () => {
  const zone = { "shop.example.com": { MX: [[10, "192.0.2.7"]] } } as const;
  const visitor = await signIn(start({ zone }));
  const shown = await visitor.submit("/verify", { email: "bert@shop.example.com" });
  expect(shown.text).toContain("(an IP address, where MX requires a host name)");
});
