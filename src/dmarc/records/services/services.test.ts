import { describe, expect, test } from "bun:test";
import { z } from "zod";
import { findService, knownServices, serviceById, SERVICE_KINDS, serviceOfAsn, serviceOfSelector } from "./services.ts";
import names from "../../../../fixtures/dmarc/service-names.json" with { type: "json" };
import { organisationalDomain, isPublicSuffix } from "../../../foundation/mail/organisational-domain.ts";
import { parseDomain } from "../../../foundation/mail/domain.ts";

const services = knownServices();
const domains = services.flatMap((service) => service.domains);

/** Names that occur more than once. */
const repeated = <Value>(values: readonly Value[]): Value[] => values.filter((value, at) => values.indexOf(value) < at);

const isDomain = (text: string): boolean => {
  const parsed = parseDomain(text);
  return parsed.ok && parsed.value.ascii === text;
};

describe("the table of services", () => {
  test("knows at least 300 domains of at least 160 services, of every kind", () => {
    expect(domains.length).toBeGreaterThanOrEqual(300);
    expect(services.length).toBeGreaterThanOrEqual(160);
    expect(new Set(services.map(({ kind }) => kind))).toEqual(new Set(SERVICE_KINDS));
  });

  test("has every id, name, domain, host pattern, selector and AS number once", () => {
    expect(repeated(services.map(({ id }) => id))).toEqual([]);
    expect(repeated(services.map(({ name }) => name.toLowerCase()))).toEqual([]);
    expect(repeated(domains)).toEqual([]);
    expect(repeated(services.flatMap(({ hosts = [] }) => hosts))).toEqual([]);
    expect(repeated(services.flatMap(({ selectors = [] }) => selectors))).toEqual([]);
    expect(repeated(services.flatMap(({ asn = [] }) => asn))).toEqual([]);
  });

  test("holds domains, and SPF includes, in lower-case A-labels", () => {
    const includes = services.flatMap(({ configure }) => (configure?.spf ? [configure.spf.include] : []));
    expect(includes.length).toBeGreaterThan(40);
    const plain = includes.map((include) => include.replaceAll(/(^|\.)_/g, "$1"));
    expect([...domains, ...plain].filter((domain) => !isDomain(domain))).toEqual([]);
  });

  test("holds no suffix that everybody registers below, but for those of hosters that name their customers' machines so", () => {
    expect(domains.filter(isPublicSuffix).sort()).toEqual([
      "a2hosted.com",
      "cloudapp.net",
      "hstgr.cloud",
      "kasserver.com",
      "kinghost.net",
      "ladesk.com",
      "mittwaldserver.info",
      "ondigitalocean.app",
      "online-server.cloud",
      "sakura.ne.jp",
      "webspaceconfig.de",
    ]);
  });

  test("has no domain below another of the same service, which would say nothing", () => {
    const needless = services.flatMap(({ domains: own }) =>
      own.filter((domain) => own.some((other) => domain.endsWith(`.${other}`))),
    );
    expect(needless).toEqual([]);
  });

  test("holds host patterns that end in a registered domain and are in lower case", () => {
    const hosts = services.flatMap(({ hosts: own = [] }) => own);
    expect(hosts.filter((pattern) => !/^[a-z0-9*-]+(?:\.[a-z0-9*-]+)+\.[a-z]+$/.test(pattern))).toEqual([]);
  });

  test("names no selector that several services use", () => {
    for (const common of ["s1", "s2", "k1", "m1", "key1", "default", "dkim", "mail", "email", "smtp", "api", "pdk1"]) {
      expect(serviceOfSelector(common)).toBeNull();
    }
  });

  test("names no AS of a cloud in which others rent hosts", () => {
    // Amazon, Microsoft, Google, DigitalOcean, Hetzner, OVH, Linode, Vultr, Alibaba, Tencent, Oracle, Cloudflare
    for (const cloud of [
      16509, 14618, 8075, 15169, 396982, 14061, 24940, 16276, 63949, 20473, 45102, 132203, 31898, 13335,
    ]) {
      expect(serviceOfAsn(cloud)).toBeNull();
    }
    expect(services.filter(({ kind, asn }) => kind === "hosting" && asn !== undefined)).toEqual([]);
  });
});

/** Where a service has its documentation on a domain that it sends no mail from. */
const DOCUMENTATION: Readonly<Record<string, string>> = {
  adestra: "help.uplandsoftware.com",
  "amazon-ses": "docs.aws.amazon.com",
  "azure-communication-services": "learn.microsoft.com",
  fastmail: "www.fastmail.help",
  "gandi-mail": "docs.gandi.net",
  "ionos-mail": "www.ionos.de",
  mailchannels: "support.mailchannels.com",
  mandrill: "mailchimp.com",
  marketo: "experienceleague.adobe.com",
  mimecast: "mimecastsupport.zendesk.com",
  "namecheap-private-email": "www.namecheap.com",
  netsuite: "docs.oracle.com",
  "oracle-cloud-email-delivery": "docs.oracle.com",
  "oracle-eloqua": "docs.oracle.com",
  "ovhcloud-email": "help.ovhcloud.com",
  pobox: "www.pobox.help",
  "salesforce-marketing-cloud": "help.salesforce.com",
  sendgrid: "www.twilio.com",
  "symantec-email-security": "knowledge.broadcom.com",
  zeptomail: "www.zoho.com",
};

test("every page is on a host of the service's own", () => {
  const foreign = services.flatMap(({ id, domains: own, configure }) =>
    [configure?.dkim?.url, configure?.return_path?.url]
      .filter((url) => url !== undefined)
      .map((url) => new URL(url).hostname)
      .filter((host) => !own.includes(organisationalDomain(host) ?? host) && DOCUMENTATION[id] !== host)
      .map((host) => `${id}: ${host}`),
  );
  expect([...new Set(foreign)]).toEqual([]);
});

describe("other signs of a service", () => {
  test.each([
    [11377, "sendgrid"],
    [14782, "mailchimp"],
    [22843, "proofpoint"],
    [30031, "mimecast"],
    [16417, "cisco-secure-email"],
    [21880, "zendesk"],
    [62371, "proton-mail"],
    [64496, null],
    [0, null],
  ])("AS%d is %p", (asn, id) => {
    expect(serviceOfAsn(asn)?.id ?? null).toBe(id);
  });

  test.each([
    ["google", "google-workspace"],
    ["selector1", "microsoft-365"],
    ["Selector2", "microsoft-365"],
    ["k2", "mailchimp"],
    ["zendesk1", "zendesk"],
    ["ctct2", "constant-contact"],
    ["MBO0001", "mailbox-org"],
    ["20210506123456pm", "postmark"],
    ["hs1-1234567", "hubspot"],
    ["scph0421", "sparkpost"],
    ["mimecast20190104", "mimecast"],
    ["strato-dkim-0002", "strato-mail"],
    ["ovhmo1234567-selector1", "ovhcloud-email"],
    ["selector1-azurecomm-prod-net", "azure-communication-services"],
    ["hostingermail-a", "hostinger-email"],
    ["googles", null],
    ["2021pmx", null],
    ["hs1", null],
    ["", null],
    ["*", null],
  ])("the selector %s is typical of %p", (selector, id) => {
    expect(serviceOfSelector(selector)?.id ?? null).toBe(id);
  });

  test("a selector longer than the DNS allows is typical of nobody", () => {
    expect(serviceOfSelector(`scph${"0".repeat(250)}`)).toBeNull();
  });

  test("an id is found, another is not", () => {
    expect(serviceById("mailchimp")?.name).toBe("Mailchimp");
    expect(serviceById("Mailchimp")).toBeNull();
  });
});

const rows = z.array(z.tuple([z.string(), z.string().nullable()])).parse(names);

describe("names as they occur in reports and in the DNS", () => {
  test("are at least 300, and each is there once", () => {
    expect(rows.length).toBeGreaterThanOrEqual(300);
    expect(repeated(rows.map(([name]) => name))).toEqual([]);
  });

  test("expect services that the table has", () => {
    expect(rows.filter(([, id]) => id !== null && serviceById(id) === null)).toEqual([]);
  });

  test.each(rows)("%s belongs to %p", (name, id) => {
    expect(findService(name)?.id ?? null).toBe(id);
  });

  test("a name longer than the DNS allows, and an empty one, belong to nobody", () => {
    expect(findService("")).toBeNull();
    expect(findService(`${"a.".repeat(127)}google.com`)).toBeNull();
    expect(findService(`${"a.".repeat(121)}google.com`)?.id).toBe("google-workspace");
  });
});
