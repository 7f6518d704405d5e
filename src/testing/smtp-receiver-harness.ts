import { afterEach } from "bun:test";
import { createLog } from "../base/log.ts";
import { SmtpReceiver } from "../net/smtp-receiver.ts";
import type { ReceiverLimits } from "../net/smtp-receiver-limits.ts";
import type { ReceivedMail, RecipientVerdict, AcceptOutcome } from "../net/smtp-receiver-rules.ts";
import { createTestClock, settle, type TestClock } from "./clock.ts";
import { type SmtpTestClient, connectSmtp } from "./smtp-test-client.ts";
import { TEST_CERTIFICATE, TEST_KEY } from "./smtp-stub-key.ts";

export interface ReceiverHarnessOptions {
  readonly limits?: Partial<ReceiverLimits>;
  readonly acceptMail?: (mail: ReceivedMail) => Promise<AcceptOutcome>;
  readonly isFull?: () => boolean;
  readonly judgeRecipient?: (address: string) => RecipientVerdict | Promise<RecipientVerdict>;
}

/** A receiver on loopback that knows `known…@…`, and keeps what it takes. */
export interface ReceiverHarness {
  readonly receiver: SmtpReceiver;
  readonly port: number;
  readonly clock: TestClock;
  readonly mails: ReceivedMail[];
  /** What was logged, as JSON lines. */
  readonly logged: string[];
  /** The content of the only mail, as latin1. */
  content(): string;
  /** Resolves when so many connections are open: the other side hears of an end a moment earlier than we do. */
  untilOpen(count: number): Promise<void>;
  /** A client that has not said anything. */
  connect(): SmtpTestClient;
  /** A client that has heard the banner and said EHLO. */
  greet(): Promise<SmtpTestClient>;
  /** A client that has heard 354 for one known recipient. */
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
      const talk = connectSmtp(port);
      ends.push(talk.destroy);
      return talk;
    };
    ends.push(() => receiver.close());
    const greet = async () => {
      const talk = connect();
      await talk.hear();
      await talk.ask("EHLO Sender.Example");
      return talk;
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
        const talk = await greet();
        const codes = await talk.codes("MAIL FROM:<a@b.example>", "RCPT TO:<known@reports.example.test>", "DATA");
        if (codes !== "250 250 354") throw new Error(`not at DATA: ${codes}`);
        return talk;
      },
    };
  };
};
