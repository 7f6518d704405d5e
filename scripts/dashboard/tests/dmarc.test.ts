import { afterEach, describe, expect, test } from "bun:test";
import { sampleReportXml } from "../../../src/testing/dmarc-reports.ts";
import { REPORT_HOST } from "../world.ts";
import { control } from "./facts.ts";
import { leave } from "./browser.ts";
import { Hands, WAYS } from "./hands.ts";

afterEach(async () => {
  expect(await leave()).toEqual([]);
});

const RUN = Date.now().toString(36);
const DAY_S = 86_400;

describe.each(WAYS)("a DMARC domain %s", (name, way) => {
  const domain = `journey-${RUN}-${name.split(" ")[1]}-lab.com`;

  test("is enrolled, its record published and checked, and a report uploaded", async () => {
    const hands = await Hands.of("owner", way, "/dmarc");
    await hands.follow(/^Enroll? (a )?domains?$/);
    await hands.fill("Domains", "nonsense");
    await hands.press("Enroll");
    await hands.sees("Nothing was enrolled");
    expect(await hands.page.getByLabel("Domains").inputValue()).toBe("nonsense");
    await hands.fill("Domains", domain);
    await hands.press("Enroll");
    const shown = await hands.sees("is enrolled. Publish its record now.");
    const record = /v=DMARC1; [^"]*?rua=mailto:\S+@[\w.-]+\w/.exec(shown)?.[0] ?? "";
    expect(record).toContain(`@${REPORT_HOST}`);
    await hands.press("I published it, check now");
    await hands.sees("Not visible yet.");
    await control({
      kind: "publish",
      records: {
        [`_dmarc.${domain}`]: { TXT: [record] },
        [`${domain}._report._dmarc.${REPORT_HOST}`]: { TXT: ["v=DMARC1;"] },
      },
    });
    await hands.press("I published it, check now");
    await hands.sees("Check now");

    const begin = Math.floor(Date.now() / 1000 / DAY_S - 1) * DAY_S;
    const text = sampleReportXml({ domain, begin, reportId: domain, rows: [{ ip: "81.169.10.20", count: 8_765 }] });
    await hands.person.goto("/dmarc/intake");
    const file = { name: "report.xml", mimeType: "application/xml", text };
    if (way.hasScripts && !way.isKeyboard) await hands.drop(file);
    else {
      await hands.attach(/choose files/, file);
      await hands.press("Import");
    }
    await hands.sees(domain);
    await hands.person.goto("/dmarc");
    await hands.follow(domain);
    await hands.sees("8,765");
  });
});

describe.each(WAYS)("a source %s", (_, way) => {
  test("is classified in place, and the class taken back", async () => {
    const hands = await Hands.of("owner", way, "/dmarc");
    await hands.follow("kaffeewerk-lab.com");
    const page = hands.page.locator("main");
    for (const [option, said] of [
      ["Threat", "Mailchimp is now threat."],
      ["Automatic", "Mailchimp is now classified automatically."],
    ] as const) {
      await hands.unfold("Change the class of Mailchimp", page);
      await hands.choose("Class of Mailchimp", option, page);
      await hands.press("Save", page);
      await hands.sees(said);
    }
  });
});

describe("DMARC", () => {
  test("shows received and rejected reports, with the raw mail and a retry", async () => {
    const hands = await Hands.of("owner", WAYS[1][1], "/dmarc/intake?outcome=rejected");
    await hands.sees(/DOCTYPE|truncated|part of the report is missing|rejected/i);
    await hands.person.goto("/dmarc/intake?outcome=quarantined");
    await hands.sees("unknown-lab.com");
  });
});
