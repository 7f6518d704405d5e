import { inTurns } from "./load.ts";

const PATIENCE_MS = 20_000;

/** What is sent when so many lines that end a reply have come: EHLO after the banner, then the group, then QUIT. */
const stepsFor = (n: number) => [
  { replies: 1, say: "EHLO loop.bench.example\r\n" },
  {
    replies: 2,
    say: `MAIL FROM:<>\r\nRCPT TO:<user${n}@loop.test>\r\nRCPT TO:<random${n}@loop.test>\r\n`,
  },
  { replies: 5, say: "QUIT\r\n" },
];

/** Counts the lines of a chunk that end a reply: three digits and a space. Replies of one line never span chunks here. */
const repliesIn = (text: string): number => text.split("\r\n").filter((line) => /^\d{3} /.test(line)).length;

/** One dialogue as bare as can be: banner, EHLO, MAIL with two RCPT in one write, QUIT. */
const talk = (port: number, n: number): Promise<void> => {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const steps = stepsFor(n);
  let heard = 0;
  let step = 0;
  Bun.connect({
    hostname: "127.0.0.1",
    port,
    socket: {
      data(socket, chunk) {
        heard += repliesIn(chunk.toString("latin1"));
        const next = steps[step];
        if (next === undefined || heard < next.replies) return;
        step++;
        socket.write(next.say);
        if (step < steps.length) return;
        resolve();
        socket.end();
      },
      close: () => reject(new Error("the sink closed early")),
    },
  }).catch(reject);
  return promise;
};

/** Runs `count` sessions of a bare `Bun.connect` loop, `atOnce` at a time; rejects when they take absurdly long. */
export const bareDialogues = async (port: number, count: number, atOnce: number): Promise<void> => {
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(() => late.reject(new Error("the bare loop did not end")), PATIENCE_MS);
  try {
    await Promise.race([inTurns(count, atOnce, (n) => talk(port, n)), late.promise]);
  } finally {
    clearTimeout(timer);
  }
};
