import { describe, expect, test } from "bun:test";
import table from "../../../fixtures/dmarc/services.json" with { type: "json" };
import { z } from "zod";
import { parseDomain } from "../../mail/domain.ts";
import { isPublicSuffix } from "../../mail/organisational-domain.ts";
import { findService, SERVICE_KINDS } from "./services.ts";

const entry = z.strictObject({
  name: z.string().min(2),
  kind: z.enum(SERVICE_KINDS),
  domains: z.array(z.string()).min(1),
});

describe("the table of services", () => {
  const entries = z.array(entry).min(80).parse(table);
  const domains = entries.flatMap((service) => service.domains);

  test("names every service and every domain once", () => {
    expect(new Set(entries.map(({ name }) => name)).size).toBe(entries.length);
    expect(new Set(domains).size).toBe(domains.length);
  });

  test("holds domains in lower-case A-labels", () => {
    for (const domain of domains) {
      expect(parseDomain(domain)).toMatchObject({ ok: true, value: { ascii: domain } });
    }
  });

  test("holds no suffix that everybody registers below, but for those of hosters that name their customers' machines so", () => {
    expect(domains.filter(isPublicSuffix)).toEqual(["kasserver.com", "cloudapp.net", "ondigitalocean.app"]);
  });

  test("has no domain below another of the same service, which would say nothing", () => {
    const needless = entries.flatMap(({ domains: own }) =>
      own.filter((domain) => own.some((other) => domain.endsWith(`.${other}`))),
    );
    expect(needless).toEqual([]);
  });
});

test.each([
  ["sendgrid.net", "SendGrid"],
  ["u1234.wl.sendgrid.net", "SendGrid"],
  ["mail-yw1-f170.google.com", "Google Workspace"],
  ["example-com.20230601.gappssmtp.com", "Google Workspace"],
  ["a8-12.smtp-out.eu-west-1.amazonses.com", "Amazon SES"],
  ["ec2-3-4-5-6.compute-1.amazonaws.com", "Amazon Web Services"],
  ["mail-eopbgr1.outbound.protection.outlook.com", "Microsoft 365"],
  ["notsendgrid.net", null],
  ["sendgrid.net.example", null],
  ["net", null],
  ["", null],
])("%s belongs to %p", (name, service) => {
  expect(findService(name)?.name ?? null).toBe(service);
});
