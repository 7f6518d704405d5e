import { describe, expect, test } from "bun:test";
import { createApps } from "../../../testing/app.ts";
import { createDomainHarness, LIVE, TEST } from "../../../testing/monitored-domains.ts";

const harness = createDomainHarness();
const start = createApps();
const MAILBOX = "dmarc@corp.example.net";
const ENROLMENT = { domain: "example.com", label: null, webhookUrl: null, recipients: [], tags: [] };

describe("with a mailbox and without a report host", () => {
  test("the mailbox is the reporting address of every domain of its account", async () => {
    const { domains } = harness({ reportHost: null, mailbox: MAILBOX });
    for (const domain of ["example.com", "example.org"]) {
      const enrolled = await domains.enrol(LIVE, { ...ENROLMENT, domain });
      expect(enrolled.created).toBe(true);
      expect(domains.view(enrolled.domain).reporting_address).toBe(MAILBOX);
      expect(enrolled.dnsRecords.map(({ value }) => value).join()).toContain(`rua=mailto:${MAILBOX}`);
    }
  });

  test("the operator authorizes reports to its domain, and publishes no MX", async () => {
    const { domains } = harness({ reportHost: null, mailbox: MAILBOX });
    const { domain } = await domains.enrol(LIVE, ENROLMENT);
    const { serviceRecords } = await domains.dns(LIVE, domain.id);
    expect(serviceRecords.map(({ type, host }) => [type, host])).toEqual([
      ["TXT", "*._report._dmarc.corp.example.net"],
    ]);
    expect(domains.canCheck()).toBe(true);
  });

  test("other accounts cannot enroll: their reports would be another account's", async () => {
    const { domains } = harness({ reportHost: null, mailbox: MAILBOX });
    const another = { accountId: "another", mode: "live" } as const;
    await expect(domains.enrol(another, ENROLMENT)).rejects.toThrow("belong to another account");
  });

  test("test keys have addresses of their own", async () => {
    const { domains } = harness({ reportHost: null, mailbox: MAILBOX });
    const { domain } = await domains.enrol(TEST, ENROLMENT);
    expect(domains.view(domain).reporting_address).not.toBe(MAILBOX);
  });
});

test("a report host goes first: each domain has its own address there", async () => {
  const { domains } = harness({ reportHost: "reports.example.net", mailbox: MAILBOX });
  const { domain } = await domains.enrol(LIVE, ENROLMENT);
  expect(domains.view(domain).reporting_address).toBe(`${domain.token}@reports.example.net`);
});

describe("the API of a service with POSTWARDEN_IMAP_URL", () => {
  const enrolWith = async (settings: Record<string, string>) => {
    const app = start({ settings });
    const key = app.newKey({ mode: "live" });
    return app.request("POST", "/v1/dmarc/domains", { key, body: { domain: "example.com" } });
  };
  const url = (user: string) => ({ IMAP_URL: `imaps://${user}:secret@mail.example.net/INBOX` });

  test.each([
    [url("DMARC%40corp.example.net"), MAILBOX],
    [{ ...url("dmarc"), IMAP_ADDRESS: MAILBOX }, MAILBOX],
    [{ ...url("someone%40example.org"), IMAP_ADDRESS: MAILBOX }, MAILBOX],
  ])("enrolls to its address: %j", async (settings, address) => {
    const { status, body } = await enrolWith(settings);
    expect(status).toBe(201);
    expect(body.domain).toMatchObject({ reporting_address: address });
  });

  test.each([[{}], [url("dmarc")], [url("a%2Cb%40example.net")]])(
    "is a 409 without an address: %j",
    async (settings) => {
      const { status, body } = await enrolWith(settings);
      expect([status, body.message]).toEqual([409, expect.stringContaining("POSTWARDEN_IMAP_ADDRESS")]);
    },
  );
});
