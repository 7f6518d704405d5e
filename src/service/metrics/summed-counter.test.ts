import { expect, test } from "bun:test";
import fc from "fast-check";
import { Counter, Registry } from "./prometheus.ts";
import { SummedCounter } from "./summed-counter.ts";

const OPTIONS = { name: "things_total", help: "Things.", labelNames: ["kind", "state"] as const };

/** The text of a scrape of each: summed, and counted by prom-client itself. */
const bothOf = () => {
  const [summed, plain] = [new Registry(), new Registry()];
  const counters = [
    new SummedCounter({ ...OPTIONS, registers: [summed] }),
    new Counter({ ...OPTIONS, registers: [plain] }),
  ];
  return { counters, scrape: async () => [await summed.metrics(), await plain.metrics()] as const };
};

const text = fc.constantFrom("a", "b", "a b", 'q"', "");
const increase = fc.record({ labels: fc.record({ kind: text, state: text }), by: fc.constantFrom(undefined, 0, 1, 7) });

test("a scrape has the same labels and values as prom-client counts, also the next one", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.array(increase, { maxLength: 20 }), { maxLength: 3 }), async (scrapes) => {
      const { counters, scrape } = bothOf();
      for (const increases of scrapes) {
        for (const { labels, by } of increases) for (const counter of counters) counter.inc(labels, by);
        const [summed, plain] = await scrape();
        expect(summed).toBe(plain);
      }
    }),
  );
});
