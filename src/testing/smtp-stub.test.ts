import { expect, test } from "bun:test";
import { createStubs, dialOpen } from "./smtp-dial.ts";
import { HANG_UP } from "./smtp-stub.ts";

const stubOf = createStubs();
const probeOf = (recipient: string) => ({ mailFrom: "us@probe.example", recipients: [recipient], smtputf8: false });

test("a script sees addresses, the number of the recipient and the connection", async () => {
  const seen: unknown[] = [];
  const stub = stubOf({
    mail: (address) => {
      seen.push(address);
      return "250 Ok";
    },
    rcpt: (address, nth, session) => {
      seen.push([address, nth, session.id]);
      return "250 Ok";
    },
  });
  const session = await dialOpen(stub);
  await session.probe(probeOf("a@x.example"));
  await session.probe(probeOf("b@x.example"));
  expect(seen).toEqual(["us@probe.example", ["a@x.example", 0, 0], "us@probe.example", ["b@x.example", 1, 0]]);
});

test("a promise holds the answer until the test lets it go", async () => {
  const held = Promise.withResolvers<string>();
  const stub = stubOf({ rcpt: () => held.promise });
  const session = await dialOpen(stub);
  let answered = false;
  const probing = session.probe(probeOf("a@x.example")).then((answer) => {
    answered = true;
    return answer;
  });
  await stub.received("RCPT");
  expect(answered).toBe(false);
  held.resolve("550 5.1.1 no");
  expect((await probing).rcpts[0]?.code).toBe(550);
});

test("two stubs can share a port on two addresses", async () => {
  const first = stubOf({ hostname: "127.0.0.2" });
  const second = stubOf({ hostname: "127.0.0.3", port: first.port });
  const session = await dialOpen(second);
  expect(session.usable).toBe(true);
  expect([first.sessions.length, second.sessions.length]).toEqual([0, 1]);
});

test("nothing is answered after the end of a connection", async () => {
  const stub = stubOf({ mail: () => HANG_UP });
  const session = await dialOpen(stub);
  const answer = await session.probe(probeOf("a@x.example"));
  expect(answer).toMatchObject({ mail: null, failure: { stage: "mail", kind: "closed" } });
  await stub.allClosed();
});

test("stopping ends the connections", async () => {
  const stub = stubOf();
  const session = await dialOpen(stub);
  stub.stop();
  await stub.allClosed();
  expect((await session.probe(probeOf("a@x.example"))).failure?.kind).toBe("closed");
});
