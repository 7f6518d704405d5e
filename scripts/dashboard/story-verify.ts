/** Verifications and lists of a month, and those that are under way now. */
import { inTurns } from "../harness/world.ts";
import type { Api } from "./api.ts";
import { HOSTILE, HOSTILE_LINE } from "./hostile.ts";
import {
  type Dice,
  HOSTILE_HEADER,
  SLOW_ADDRESSES,
  SPECIAL_ADDRESSES,
  customers,
  customersCsv,
} from "./story-addresses.ts";
import type { World } from "./world.ts";

const AT_ONCE = 24;
const WAIT_S = 20;
const TOO_MANY = [429];
const RUNNING_ROWS = 4_000;

const verify = (api: Api, email: string, timeoutS: number, source?: string) =>
  api.post(
    `/v1/email-verifications?timeout=${timeoutS}`,
    { email, ...(source === undefined ? {} : { source }) },
    TOO_MANY,
  );

/** What customers and colleagues have checked on one day. */
export const verifyForADay = (apis: readonly Api[], dice: Dice, count: number): Promise<void> =>
  inTurns(customers(dice, count), AT_ONCE, (email) =>
    verify(dice.pick(apis), email, WAIT_S, dice.pick(["checkout", "crm", "form"])),
  );

/** One of every sub_status, with the servers that take seconds. */
export const verifyEveryReason = (api: Api): Promise<void> =>
  inTurns([...SPECIAL_ADDRESSES, ...SLOW_ADDRESSES], AT_ONCE, (email) => verify(api, email, WAIT_S, HOSTILE.script));

const upload = (api: Api, csv: string, query: Readonly<Record<string, string>>) =>
  api.send<{ id: string }>(`/v1/bulk-verifications?${new URLSearchParams(query)}`, { body: csv, type: "text/csv" });

const isOver = async (api: Api, id: string): Promise<boolean> =>
  !["queued", "running"].includes((await api.get<{ status: string }>(`/v1/bulk-verifications/${id}`)).status);

/** A list from the upload to its end. */
export const completeList = async (api: Api, csv: string, query: Readonly<Record<string, string>>): Promise<string> => {
  const { id } = await upload(api, csv, query);
  while (!(await isOver(api, id))) await Bun.sleep(100);
  return id;
};

/** The lists of the last month, the last of them with hostile header, cells and name. */
export const LISTS: ReadonlyArray<{
  readonly daysAgo: number;
  run(api: Api, dice: Dice, world: World): Promise<unknown>;
}> = [
  { daysAgo: 26, run: (api, dice) => completeList(api, customersCsv(dice, 320), { name: "customers-october.csv" }) },
  {
    daysAgo: 12,
    run: (api, dice, world) =>
      completeList(api, customersCsv(dice, 640, { delimiter: ";", before: "\uFEFF" }), {
        ...{ name: "Newsletter Herbst 2026", webhook_url: world.webhooks.url("/orders"), source: "newsletter" },
      }),
  },
  {
    daysAgo: 4,
    run: (api, dice, world) =>
      completeList(api, customersCsv(dice, 90, { header: HOSTILE_HEADER }), {
        ...{
          name: HOSTILE_LINE.slice(0, 200),
          column: "1",
          header: "true",
          webhook_url: world.webhooks.url("/hostile"),
        },
      }),
  },
];

const BOUNCES = 150;

/** Mail to customers that came back, hard and soft, and the words of servers that attack the page. */
export const reportBounces = async (api: Api, dice: Dice, atMs: number): Promise<void> => {
  const replies = [
    ["5.1.1", "550 5.1.1 The email account that you tried to reach does not exist. Please check the address for typos"],
    ["5.2.2", "552 5.2.2 The recipient's mailbox is full"],
    ["5.7.1", `550 5.7.1 Blocked ${HOSTILE_LINE}`],
    ["5.1.1", "550 5.1.1 User unknown"],
  ] as const;
  const events = [...customers(dice, BOUNCES), ...SPECIAL_ADDRESSES].map((email, at) => {
    const [status, reason] = dice.pick(replies);
    const timestamp = Math.floor(atMs / 1_000) - at * 3_600;
    return { event: "bounce", type: "bounce", email, status, reason, timestamp, sg_event_id: `event-${at}` };
  });
  await api.post("/v1/bounces", events);
};

/** One list that was cancelled, one that runs for long, and checks that wait for greylisting. */
export const startPresent = async (api: Api, dice: Dice): Promise<void> => {
  const slow = (count: number) =>
    customers(dice, count).map((email, at) => `c${at}.${email.split("@")[0]?.replace(/[^a-z.]/g, "")}@slow.example`);
  const cancelled = await upload(api, `email\n${slow(300).join("\n")}\n`, { name: "old-leads.csv" });
  await inTurns(["anna@patience.example", "lena.hoffmann@patience.example", "office@patience.example"], 3, (email) =>
    verify(api, email, 1),
  );
  await Bun.sleep(2_500);
  await api.post(`/v1/bulk-verifications/${cancelled.id}/cancel`);
  const rows = [...customers(dice, 400), ...slow(RUNNING_ROWS)];
  await upload(api, `email\n${rows.join("\n")}\n`, { name: "customers.csv" });
};
