import { afterEach } from "bun:test";
import { createLog } from "../foundation/base/log.ts";
import { SmtpReceiver } from "../foundation/net/smtp-receiver.ts";
import type {
  ReceiverLimits,
  ReceivedMail,
  RecipientVerdict,
  AcceptOutcome,
} from "../foundation/net/smtp-receiver-rules.ts";
import { createTestClock, settle, type TestClock } from "./clock.ts";
import { SmtpTestClient } from "./smtp-test-client.ts";
import { TEST_CERTIFICATE, TEST_KEY } from "./smtp-stub-key.ts";

export interface ReceiverHarnessOptions {
  readonly limits?: Partial<ReceiverLimits>;
  readonly acceptMail?: (mail: ReceivedMail) => Promise<AcceptOutcome>;
  readonly isFull?: () => boolean;
  readonly judgeRecipient?: (address: string) => RecipientVerdict | Promise<RecipientVerdict>;
}

/** A receiver on loopback that accepts mail for `known…@…` and stores it. */
export interface ReceiverHarness {
  readonly receiver: SmtpReceiver;
  readonly port: number;
  readonly clock: TestClock;
  readonly mails: ReceivedMail[];
  /** What was logged, as JSON lines. */
  readonly logged: string[];
  /** The content of the only mail, as latin1. */
  content(): string;
  /** Resolves when `count` connections are open: the other side sees a close a moment earlier. */
  untilOpen(count: number): Promise<void>;
  /** A client that has not sent anything. */
  connect(): SmtpTestClient;
  /** A client that has read the banner and sent EHLO. */
  greet(): Promise<SmtpTestClient>;
  /** A client that has read 354 for one known recipient. */
  atData(): Promise<SmtpTestClient>;
}

/** Starts receivers for the tests of one file, and closes them and their clients after each test. */
export const createReceiverHarnesses = (): ((options?: ReceiverHarnessOptions) => Promise<ReceiverHarness>) => {
  const ends: Array<() => unknown> = [];
  afterEach(async () => {
    await Promise.all(ends.splice(0).map((end) => end()));
  });
  return async (options = {}) => {
    const clock = createTestClock();
    const mails: ReceivedMail[] = [];
    const logged: string[] = [];
    const receiver = new SmtpReceiver({
      hostName: "reports.example.test",
      tls: { cert: TEST_CERTIFICATE, key: TEST_KEY },
      clock,
      log: createLog("debug", clock, (line) => logged.push(line)),
      rules: {
        judgeRecipient: options.judgeRecipient ?? ((address) => (address.startsWith("known") ? "known" : "unknown")),
        async acceptMail(mail) {
          mails.push(mail);
          return (await options.acceptMail?.(mail)) ?? "accepted";
        },
        ...(options.isFull && { isFull: options.isFull }),
      },
      ...(options.limits && { limits: options.limits }),
    });
    const at = await receiver.listen("127.0.0.1", 0);
    if (!at.ok) throw new Error(at.error.message);
    const { port } = at.value;
    const connect = (): SmtpTestClient => {
      const client = new SmtpTestClient(port);
      ends.push(() => client.destroy());
      return client;
    };
    ends.push(() => receiver.close());
    const greet = async () => {
      const client = connect();
      await client.readReply();
      await client.command("EHLO Sender.Example");
      return client;
    };
    return {
      receiver,
      port,
      clock,
      mails,
      logged,
      content: () => Buffer.from(mails[0]?.bytes ?? []).toString("latin1"),
      async untilOpen(count) {
        while (receiver.counts().open !== count) await settle();
      },
      connect,
      greet,
      async atData() {
        const client = await greet();
        const codes = await client.codes("MAIL FROM:<a@b.example>", "RCPT TO:<known@reports.example.test>", "DATA");
        if (codes !== "250 250 354") throw new Error(`not at DATA: ${codes}`);
        return client;
      },
    };
  };
};
