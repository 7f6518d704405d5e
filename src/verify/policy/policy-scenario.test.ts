import { afterEach, expect, test } from "bun:test";
import { connect } from "node:net";
import { ok } from "../../foundation/base/errors.ts";
import { systemRandom } from "../../foundation/base/secrets.ts";
import { settle } from "../../testing/clock.ts";
import { silentLog } from "../../testing/silent-log.ts";
import { createRunnerFixtures } from "../../testing/verification-runner.ts";
import { PolicySlice } from "./open.ts";
import { RecipientStore } from "./recipient-store.ts";

const fixture = createRunnerFixtures();
const ends: Array<() => Promise<void>> = [];
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

test("an unknown recipient passes, is verified and charged in the background, and is rejected the next time", async () => {
  const { db, clock, checksOf, spent, held } = fixture();
  const { checks } = checksOf({
    ask: async () => ({ reading: "mailbox_not_found", rule: "unknown_user", reply: "550 5.1.1 User unknown" }),
  });
  const counts: string[] = [];
  const policy = new PolicySlice(
    { db, clock, log: silentLog, random: systemRandom },
    {
      ...{ policyListen: { address: "127.0.0.1", port: 0 }, policyNetworks: [], policyAccount: null },
      ...{ policyMode: "reject", policyReject: ["mailbox_not_found"], policyMaxAgeDays: 30 },
      ...{ policySuppression: true, policyVerifyPerDay: 10 },
    },
    {
      checks,
      matchSuppression: (email) => (email.startsWith("stop@") ? email : null),
      accountOf: () => ok("account-1"),
      watch: { answered: (one) => counts.push(one), refused: () => undefined, background: (one) => counts.push(one) },
    },
  );
  ends.push(() => policy.stop());
  const opened = await policy.listen();
  if (!opened.ok || opened.value === null || "path" in opened.value) throw new Error("not listening");
  const { address: host, port } = opened.value;
  const ask = (recipient: string) =>
    new Promise<string>((resolve) => {
      const socket = connect({ host, port });
      socket.once("data", (bytes) => {
        resolve(bytes.toString());
        socket.destroy();
      });
      socket.write(`request=smtpd_access_policy\nprotocol_state=RCPT\nrecipient=${recipient}\n\n`);
    });

  expect(await ask("Bob@x.example")).toBe("action=DUNNO\n\n");
  for (let turns = 0; turns < 100 && !counts.includes("verified"); turns++) await settle();
  expect([spent(), held()]).toEqual([1, 0]);
  expect(await ask("bob@x.example")).toBe(
    "action=REJECT 5.1.1 <bob@x.example>: known not to exist since 2026-01-01 (Postwarden)\n\n",
  );
  expect(await ask("stop@x.example")).toBe(
    "action=REJECT 5.7.1 <stop@x.example>: on the suppression list (Postwarden)\n\n",
  );
  expect(spent()).toBe(1);
  expect(db.sqlite.query("SELECT key_id AS keyId, source, mode FROM verifications").all()).toEqual([
    { keyId: "policy", source: "policy", mode: "live" },
  ]);
  const store = new RecipientStore(db);
  expect(["account-1", "account-2"].map((account) => store.countSince("policy", account, 0))).toEqual([1, 0]);
  // Results of test keys are about no mail server.
  db.sqlite.run("UPDATE verifications SET mode = 'test'");
  expect(await ask("bob@x.example")).toBe("action=DUNNO\n\n");
});
