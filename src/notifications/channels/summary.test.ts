import { expect, test } from "bun:test";
import { EVENT_DOCS } from "../../service/event-docs.ts";
import { eventMessage } from "./message.ts";
import { summaryOf } from "./summary.ts";

const bodyOf = (type: string, data: object = {}, timestamp = "2026-01-01T00:00:00.000Z") =>
  JSON.stringify({
    type,
    timestamp,
    data: { ...(EVENT_DOCS.find((doc) => doc.type === type)?.example as object), ...data },
  });

test.each([
  ["an end", ["blacklist.delisted"], null],
  ["two ends", ["blacklist.delisted", "blacklist.delisted"], [null, null]],
  ["a begin and its end", ["blacklist.listed", "blacklist.delisted"], ["2026-01-01T00:01:00.000Z"]],
  [
    "an end, then a begin and its end",
    ["blacklist.delisted", "blacklist.listed", "blacklist.delisted"],
    [null, "2026-01-01T00:02:00.000Z"],
  ],
] as const)("%s: lines with their ends", (_, types, ends) => {
  const held = types.map((type, row) => ({ row, body: bodyOf(type, {}, `2026-01-01T00:0${row}:00.000Z`) }));
  const summary = summaryOf(held, { docs: EVENT_DOCS, hasIncidents: false });
  expect(summary?.data.lines.map((line) => line.ended_at) ?? null).toEqual(ends === null ? null : [...ends]);
});

const CONTEXT = { baseUrl: null, docs: EVENT_DOCS };

test("a message has ten facts and the event", () => {
  const fields = ["severity", "label", "name", "category", "meaning", "text", "reason", "remedy", "status", "record"];
  const data = Object.fromEntries([...fields, "count", "day", "messages"].map((name) => [name, "x"]));
  expect(eventMessage(bodyOf("blacklist.listed", data), CONTEXT).facts).toHaveLength(11);
});

test("a link that does not fit into messages of all services is left out", () => {
  const linksOf = (length: number) => {
    const delist_url = "https://list.example/".padEnd(length, "x");
    return eventMessage(bodyOf("blacklist.listed", { delist_url }), CONTEXT).links.length;
  };
  expect([linksOf(1_000), linksOf(1_001)]).toEqual([1, 0]);
});
