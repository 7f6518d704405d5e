import { describe, expect, test } from "bun:test";
import { createMailNetworks, type MailNetworkOptions } from "../testing/mail-network.ts";
import { OPERATOR } from "../foundation/base/on-behalf-of.ts";
import { type AttemptOrder, type MadeAttempt, OwnAttempts } from "./attempts.ts";
import { unpackEvidence } from "./store.ts";

const networkOf = createMailNetworks();

const orderOf = (submitted: string, more: Partial<AttemptOrder> = {}): AttemptOrder => ({
  ...{ submitted, isCell: false, before: null, accountId: "a", onBehalfOf: OPERATOR, duringOutage: "conclude" },
  ...more,
});

const tracesOf = (made: MadeAttempt) => {
  if (made.kind === "repeat" || made.evidence === null) throw new Error("nothing is stored");
  return { ...made, evidence: made.evidence };
};

const makeAt = (options: MailNetworkOptions, order: AttemptOrder): Promise<MadeAttempt> =>
  new OwnAttempts(networkOf(options).engine).make(order);

const host = (rcpt: string) => ({ hosts: [{ name: "mx.x.example", script: { rcpt: () => rcpt } }] });

describe("an attempt leaves", () => {
  test("its result, the evidence as it is stored, and what the last probe found", async () => {
    const made = await makeAt(host("550 5.1.1 No such user"), orderOf("ada@x.example"));
    expect(made).toMatchObject({
      ...{ kind: "concluded", chargeable: true, attempts: 1, provider: "x.example" },
      result: { sub_status: "mailbox_not_found" },
      finding: { reading: "mailbox_not_found", host: "mx.x.example" },
    });
    expect(unpackEvidence(tracesOf(made).evidence).conclusion?.sub_status).toBe("mailbox_not_found");
  });

  test("a retry, whose attempt begins with the stored evidence", async () => {
    const network = networkOf(host("450 4.2.0 Greylisted, please come back later"));
    const attempts = new OwnAttempts(network.engine);
    const first = tracesOf(await attempts.make(orderOf("ada@x.example")));
    expect(first).toMatchObject({ kind: "retry", attempts: 1, finding: { reading: "greylisted" } });
    const second = await attempts.make(orderOf("ada@x.example", { before: first.evidence }));
    expect(second).toMatchObject({ attempts: 2 });
  });

  test("the first mail host where none decided, and no host without any", async () => {
    const timeout = { hosts: [{ name: "mx.x.example", unconnectable: "refused_or_unreachable" }] } as const;
    expect(await makeAt(timeout, orderOf("ada@x.example"))).toMatchObject({
      finding: { reading: "unreachable", host: "mx.x.example" },
    });
    expect(await makeAt({}, orderOf("ada@nowhere.example"))).toMatchObject({ finding: null, provider: null });
  });
});

test("an address is extracted from a cell only", async () => {
  const text = "Ada <ada@x.example>";
  expect(await makeAt({}, orderOf(text))).toMatchObject({ result: { sub_status: "invalid_syntax" } });
  expect(await makeAt({}, orderOf(text, { isCell: true }))).toMatchObject({ result: { sub_status: "catch_all" } });
});

test("an attempt that ended in a bug is an internal error, also when its evidence cannot be read", () => {
  const attempts = new OwnAttempts(networkOf().engine);
  for (const before of [null, Buffer.from("no evidence")])
    expect(attempts.fail(orderOf("ada@x.example", { before }))).toMatchObject({
      ...{ kind: "concluded", chargeable: false, result: { sub_status: "internal_error" } },
    });
});
