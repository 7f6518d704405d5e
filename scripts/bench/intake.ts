import { postList, startForLists } from "./bulk.ts";
import { watch } from "./bulk-list.ts";
import { type Mark, median } from "./marks.ts";
import type { Stage } from "./stage.ts";

const PATH = "/v1/bulk-verifications";
const LARGE_LISTS = 12;
const LARGE_ROWS = 500_000;
const SMALL_LISTS = 30;
const PAUSE_MS = 100;
const HOSTILE_BYTES = 64 * 1000 * 1000;
const VALUES = 600_000;

const large = (): Blob =>
  new Blob(["email\n", Array.from({ length: LARGE_ROWS }, (_, n) => `user${n}@domain${n % 5_000}.test`).join("\n")]);

/** A body that is no list, but could take long to read: one text again and again between two others. */
interface Hostile {
  readonly type: string;
  readonly parts: readonly [before: string, repeated: string, after: string];
  readonly times: number;
}

const csv = (letter: string): Hostile => ({ type: "text/csv", parts: ["", letter, ""], times: HOSTILE_BYTES });
const json = (...parts: Hostile["parts"]): Hostile => ({ type: "application/json", parts, times: VALUES });
const HOSTILE = [
  ...["\n", " ", "<", ",", '"'].map(csv),
  json("{", '"k#":1,', '"z":1}'),
  json('{"emails":[', "[],", "[]]}"),
];

/** Sends one from a process of its own: what it costs to make such a body must not be seen by the watch. */
const SENDER = `
  const { url, key, type, parts: [before, repeated, after], times } = JSON.parse(process.env.BODY);
  const whole = repeated.includes("#")
    ? Array.from({ length: times }, (_, n) => repeated.replace("#", String(n))).join("")
    : repeated.repeat(times);
  const headers = { authorization: "Bearer " + key, "content-type": type };
  const { status } = await fetch(url, { method: "POST", headers, body: before + whole + after });
  process.exit(status === 400 ? 0 : 1);
`;

const send = async (url: string, key: string, body: Hostile): Promise<void> => {
  const env = { BODY: JSON.stringify({ url, key, ...body }) };
  const sender = Bun.spawn([process.execPath, "--no-env-file", "-e", SENDER], { env });
  if ((await sender.exited) !== 0) throw new Error(`a body of ${body.parts.join("")} was not refused with 400`);
};

/** How long a list of one address takes beside large lists of another account, and whether any body holds everybody up. */
export const measureIntake = async (stage: Stage): Promise<Mark[]> => {
  const { service, ask, test, other } = await startForLists(stage, "intake");
  const headers = { authorization: `Bearer ${test}`, "content-type": "text/csv" };
  const smallLists = async (): Promise<number[]> => {
    const times: number[] = [];
    for (let n = 0; n < SMALL_LISTS; n++) {
      const startedMs = performance.now();
      await postList(ask, other, "email\nuser@domain.test\n");
      times.push(performance.now() - startedMs);
      await Bun.sleep(PAUSE_MS);
    }
    return times.toSorted((a, b) => a - b);
  };
  try {
    await smallLists();
    const idle = await smallLists();
    const list = large();
    let taken = 0;
    const larges = Array.from({ length: LARGE_LISTS }, async () => {
      const { status } = await ask(PATH, { method: "POST", headers, body: list });
      if (status === 202) taken++;
    });
    const beside = await smallLists();
    await Promise.all(larges);
    const stop = watch(service);
    for (const body of HOSTILE) await send(service.url + PATH, test, body);
    const { worstMs } = await stop();
    const group = "intake";
    const note = `beside ${LARGE_LISTS} lists of ${LARGE_ROWS} rows of another account, of which ${taken} were accepted`;
    return [
      { group, what: "a list of one address", value: median(idle), unit: "ms" },
      { group, what: "the same beside large lists", value: median(beside), unit: "ms", limit: { most: 500 }, note },
      { group, what: "the slowest of them", value: beside.at(-1) ?? null, unit: "ms", limit: { most: 2_000 } },
      { group, what: "longest gap, bodies that are no lists", value: worstMs, unit: "ms", limit: { most: 50 } },
    ];
  } finally {
    await service.stop();
  }
};
