import { beforeAll, describe, expect, test } from "bun:test";
import { OUTCOMES } from "../../dmarc/reports/ingest/ingestion-finding.ts";
import { createTestClock } from "../../testing/clock.ts";
import { exerciseMetrics, FULL_STATE } from "../../testing/metrics.ts";
import { SUB_STATUSES, VERDICTS } from "../../verify/result.ts";
import { Metrics } from "./metrics.ts";

const FOLDER = `${import.meta.dir}/../../../fixtures/monitoring`;
/** Labels that Prometheus adds. */
const SCRAPE_LABELS = ["job", "le"];
const SELECTOR = /\b(up|(?:postwarden|process)_[a-z_]+)(?:\{([^}]*)\})?/g;
const MATCHER = /(\w+)(=~|=|!=)"([^"]*)"/g;

/** Name of each metric, with the suffixes of histograms → the labels of its samples. */
const known = new Map<string, Set<string>>([["up", new Set()]]);

beforeAll(async () => {
  const metrics = new Metrics(createTestClock());
  await exerciseMetrics(metrics);
  const text = await metrics.render(FULL_STATE);
  for (const [, name = ""] of text.matchAll(/^# TYPE (\w+)/gm)) known.set(name, new Set());
  for (const [, name = "", labels = ""] of text.matchAll(/^(\w+)(?:\{(.*)\})? /gm)) {
    const names = known.get(name) ?? new Set();
    for (const [, label = ""] of labels.matchAll(/(\w+)="/g)) names.add(label);
    known.set(name, names);
  }
});

interface Matcher {
  readonly metric: string;
  readonly label: string;
  readonly values: readonly string[];
}

/** Problems of a query: metrics that do not exist, and labels that they do not have. */
const problemsOf = (text: string): string[] =>
  [...text.matchAll(SELECTOR)].flatMap(([, metric = "", matchers = ""]) => {
    const labels = known.get(metric);
    if (labels === undefined) return [`${metric} does not exist`];
    return [...matchers.matchAll(MATCHER)].flatMap(([, label = ""]) =>
      labels.has(label) || SCRAPE_LABELS.includes(label) ? [] : [`${metric} has no label ${label}`],
    );
  });

const matchersOf = (text: string): Matcher[] =>
  [...text.matchAll(SELECTOR)].flatMap(([, metric = "", matchers = ""]) =>
    [...matchers.matchAll(MATCHER)].map(([, label = "", , value = ""]) => ({
      ...{ metric, label, values: value.split("|") },
    })),
  );

const read = (name: string): Promise<string> => Bun.file(`${FOLDER}/${name}`).text();

describe.each(["alerts.yaml", "grafana.json"])("%s", (name) => {
  const queries = async (): Promise<string> => (await read(name)).replaceAll('\\"', '"');

  test("uses only metrics that exist, with labels that they have", async () => {
    const text = await queries();
    expect([...text.matchAll(SELECTOR)].length).toBeGreaterThan(15);
    expect(problemsOf(text)).toEqual([]);
  });

  test("uses only values that a label can have", async () => {
    const values: Readonly<Record<string, readonly string[]>> = {
      sub_status: SUB_STATUSES,
      verdict: VERDICTS,
      mode: ["live", "test"],
      cached: ["true", "false"],
      "postwarden_reports_total outcome": OUTCOMES,
      "postwarden_webhook_attempts_total outcome": ["delivered", "retry", "rejected", "failed"],
    };
    const wrong = matchersOf(await queries()).flatMap(({ metric, label, values: given }) => {
      const possible = values[`${metric} ${label}`] ?? values[label];
      return possible === undefined ? [] : given.filter((value) => !possible.includes(value));
    });
    expect(wrong).toEqual([]);
  });
});

test("the check finds a metric, a label and a suffix that do not exist", () => {
  expect(problemsOf('rate(postwarden_nothing_total[5m]) > postwarden_ready{mood="good"}')).toEqual([
    "postwarden_nothing_total does not exist",
    "postwarden_ready has no label mood",
  ]);
  expect(problemsOf("postwarden_ready_bucket")).toEqual(["postwarden_ready_bucket does not exist"]);
});

test("the alert on backups also fires before the first one, when its metric is absent", async () => {
  const rendered = await new Metrics(createTestClock()).render({ ...FULL_STATE, lastBackupMs: null });
  expect(rendered).not.toMatch(/^postwarden_backup_last_timestamp_seconds /m);
  expect(rendered).toMatch(/^postwarden_backup_enabled 1$/m);
  const [rule = ""] = /- alert: PostwardenNoBackup\n.*?(?=- alert)/s.exec(await read("alerts.yaml")) ?? [];
  expect(rule).toMatch(
    /postwarden_backup_enabled == 1\s+unless time\(\) - postwarden_backup_last_timestamp_seconds <= 36 \* 3600\n/,
  );
});

test("every alert has a summary, an action and a severity; every panel has a place of its own", async () => {
  const alerts = (await read("alerts.yaml")).split("- alert: ").slice(1);
  expect(alerts.length).toBeGreaterThan(9);
  for (const alert of alerts) expect(alert).toMatch(/expr: .*severity: (critical|warning).*summary: .*action: /s);
  expect(new Set(alerts.map((alert) => alert.split("\n")[0])).size).toBe(alerts.length);
  const { panels } = JSON.parse(await read("grafana.json")) as {
    panels: readonly { id: number; gridPos: { x: number; y: number; w: number; h: number } }[];
  };
  const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
    Array.from({ length: w * h }, (_, at) => `${x + (at % w)} ${y + Math.floor(at / w)}`),
  );
  expect(new Set(cells).size).toBe(cells.length);
  expect(new Set(panels.map(({ id }) => id)).size).toBe(panels.length);
});
