import { afterEach, expect, test } from "bun:test";
import { leave, signedIn } from "./browser.ts";

afterEach(leave);

const DAY_MS = 86_400_000;
const daysOf = (count: number): string[] =>
  Array.from({ length: count }, (_, at) => new Date(Date.UTC(2026, 0, 1) + at * DAY_MS).toISOString().slice(0, 10));

/** Draws these counts in place of the chart of the page. Returns the runs of columns that have the colour of the series, as [begin, end]. */
const drawn = async (values: ReadonlyArray<number | null>) => {
  const place = document.querySelector<HTMLElement>("[data-chart]");
  if (place === null) throw new Error("the page has no chart");
  const days = place.dataset.days ?? "";
  place.dataset.chart = JSON.stringify({
    ...{ days: days.split(" "), markers: [], unit: "" },
    series: [{ title: "Aligned", kind: "ok", values }],
  });
  document.dispatchEvent(new CustomEvent("htmx:after:swap"));
  // The chart draws in a task of its own.
  await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
  const canvas = place.querySelector("canvas");
  const context = canvas?.getContext("2d");
  if (!canvas || !context) throw new Error("nothing was drawn");
  const probe = document.createElement("canvas").getContext("2d");
  if (!probe) throw new Error("no canvas");
  probe.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--chart-ok").trim();
  probe.fillRect(0, 0, 1, 1);
  const wanted = probe.getImageData(0, 0, 1, 1).data;
  const { data, width, height } = context.getImageData(0, 0, canvas.width, canvas.height);
  const hasColour = (x: number): boolean =>
    Array.from({ length: height }, (_, y) => (y * width + x) * 4).some((at) =>
      [0, 1, 2].every((part) => Math.abs((data[at + part] ?? 0) - (wanted[part] ?? 0)) < 24),
    );
  const runs: Array<[number, number]> = [];
  for (let x = 0; x < width; x += 1) {
    if (!hasColour(x)) continue;
    const last = runs.at(-1);
    if (last !== undefined && last[1] === x - 1) last[1] = x;
    else runs.push([x, x]);
  }
  return { runs, width };
};

const CASES = [
  ["one day", [412], 1],
  ["one day of thirty", Array.from({ length: 30 }, (_, at) => (at === 29 ? 412 : null)), 1],
  ["every third day", Array.from({ length: 30 }, (_, at) => (at % 3 === 0 ? 100 + at : null)), 10],
] as const;

test.each([1440, 1024, 390])(
  "a chart has a bar for each day with data and gaps for the others, at %d px",
  async (width) => {
    const person = await signedIn("owner", { width });
    await person.goto("/usage");
    for (const [name, values, bars] of CASES) {
      await person.page
        .locator("[data-chart]")
        .first()
        .evaluate((place, days) => {
          (place as HTMLElement).dataset.days = days;
        }, daysOf(values.length).join(" "));
      const { runs } = await person.page.evaluate(drawn, [...values]);
      expect([name, runs.length]).toEqual([name, bars]);
      expect(runs.every(([begin, end]) => end > begin)).toBe(true);
    }
  },
);

test.each([1440, 390])("a chart of 400 days has no gaps between its bars, at %d px", async (width) => {
  const person = await signedIn("owner", { width });
  await person.goto("/usage");
  await person.page
    .locator("[data-chart]")
    .first()
    .evaluate((place, days) => {
      (place as HTMLElement).dataset.days = days;
    }, daysOf(400).join(" "));
  const values = Array.from({ length: 400 }, () => 500);
  const { runs, width: drawnWidth } = await person.page.evaluate(drawn, values);
  const covered = runs.reduce((sum, [begin, end]) => sum + end - begin + 1, 0);
  expect(covered / drawnWidth).toBeGreaterThan(0.75);
});
