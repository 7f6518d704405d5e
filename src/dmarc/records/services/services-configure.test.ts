import { describe, expect, test } from "bun:test";
import { type KnownService, knownServices, serviceById, configureAdvice } from "./services.ts";

const BULK: KnownService = {
  id: "example",
  name: "Example Mail",
  kind: "bulk sender",
  purpose: "newsletters",
  domains: ["example.net"],
};
const PAGE = "https://example.net/dkim";

const adviceWith = (configure: KnownService["configure"], service: KnownService = BULK): readonly string[] =>
  configureAdvice({ ...service, configure }, "example.com");

describe("what to configure", () => {
  test.each([
    ["cname", "publish the CNAME records that it shows"],
    ["txt", "publish the TXT record that it shows"],
    ["ns", "publish the NS records that it shows"],
    [undefined, "publish the records that it shows"],
  ] as const)("DKIM by %p", (how, records) => {
    expect(adviceWith({ dkim: { url: PAGE, how } })[0]).toBe(
      `Set up DKIM for example.com at Example Mail (${PAGE}) and ${records}.`,
    );
  });

  test("a note follows the step that it is about", () => {
    expect(adviceWith({ dkim: { url: PAGE, note: "Ask support first." }, spf: null })).toEqual([
      `Set up DKIM for example.com at Example Mail (${PAGE}) and publish the records that it shows.`,
      "Ask support first.",
      "Do not add this service to the SPF record: it uses its own return path. DKIM is enough.",
    ]);
  });

  test.each([
    [{ spf: { include: "spf.example.net" } }, "Add include:spf.example.net to the SPF record of example.com."],
    [
      { spf: null, return_path: { supported: false } },
      "SPF cannot be aligned: this service uses its own return path. DKIM is enough.",
    ],
    [
      { spf: null, return_path: { supported: true, url: PAGE } },
      `To align SPF as well, set a custom return path below example.com at Example Mail (${PAGE}).`,
    ],
    [
      { return_path: { supported: true } },
      "To align SPF as well, set a custom return path below example.com at Example Mail.",
    ],
    [
      { dkim: { url: PAGE }, spf: null, return_path: { supported: true, url: PAGE } },
      "To align SPF as well, set a custom return path below example.com at Example Mail.",
    ],
    [{}, "No SPF include of Example Mail is known; aligned DKIM is enough."],
    [undefined, "No SPF include of Example Mail is known; aligned DKIM is enough."],
  ])("SPF with %p", (configure, sentence) => {
    expect(adviceWith(configure).at(-1)).toBe(sentence);
  });

  test("says that no page is known, and gives no address then", () => {
    const [step = ""] = adviceWith(undefined);
    expect(step).toContain("Look for domain authentication in its settings");
    expect(adviceWith(undefined).join(" ")).not.toContain("http");
  });

  test("a forwarder has nothing to configure", () => {
    expect(configureAdvice({ ...BULK, forwards: true }, "example.com")).toEqual([
      "Nothing to configure at Example Mail for example.com: it forwards mail.",
    ]);
  });

  test("on a rented server DKIM is the user's own", () => {
    const hoster: KnownService = { ...BULK, kind: "hosting" };
    expect(adviceWith(undefined, hoster)).toEqual([
      "Sign mail from example.com with DKIM on the server itself, or send it through a mail service that signs it.",
      "Add the address of the server to the SPF record of example.com.",
    ]);
    expect(adviceWith({ spf: { include: "spf.example.net" } }, hoster)[1]).toBe(
      "Add include:spf.example.net to the SPF record of example.com, or the address of the server if it sends directly.",
    );
    expect(adviceWith({ dkim: { url: PAGE } }, hoster)[0]).toContain(PAGE);
  });
});

test("Mailchimp, as users meet it", () => {
  const mailchimp = serviceById("mailchimp");
  expect(mailchimp === null ? [] : configureAdvice(mailchimp, "example.com")).toEqual([
    "Set up DKIM for example.com at Mailchimp (https://mailchimp.com/help/set-up-email-domain-authentication/) and publish the CNAME records that it shows.",
    "SPF cannot be aligned: this service uses its own return path. DKIM is enough.",
  ]);
});

test("every service has advice in whole sentences that name the domain", () => {
  for (const service of knownServices()) {
    const advice = configureAdvice(service, "example.com");
    expect(advice[0]).toContain("example.com");
    expect(advice.filter((sentence) => !/^[A-Z].*\.$/.test(sentence))).toEqual([]);
    expect(advice.filter((sentence) => sentence.length > 400)).toEqual([]);
  }
});
