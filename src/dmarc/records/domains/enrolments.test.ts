import { describe, expect, test } from "bun:test";
import { AppError } from "../../../foundation/base/errors.ts";
import { createDomainHarness, LIVE } from "../../../testing/monitored-domains.ts";
import { ENROLLED_AT_ONCE_MAX } from "./enrolments.ts";

const newHarness = createDomainHarness();

const problemOf = async (work: Promise<unknown>): Promise<string> => {
  try {
    await work;
    return "";
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
    return JSON.stringify(error.details);
  }
};

describe("a text of domains", () => {
  test("enrols each once, says which were enrolled before, and checks the DNS of the new ones", async () => {
    const { domains, enrol, find } = newHarness();
    await enrol("b.com");
    const enrolled = await domains.enrolText(LIVE, "A.com, b.com\n\tc.com; a.com.", []);
    expect(enrolled.map(({ created, domain }) => [domain.domain, created])).toEqual([
      ["a.com", true],
      ["b.com", false],
      ["c.com", true],
    ]);
    expect(enrolled.map(({ domain }) => find(domain.id).lastCheck === null)).toEqual([false, false, false]);
  });

  test("with a mistake enrols nothing and names the mistakes", async () => {
    const { domains, store } = newHarness();
    const message = await problemOf(domains.enrolText(LIVE, "a.com x@b.com ftp://c.com\nfoo bar", []));
    expect(message).toContain('"path":"domains"');
    expect(message).toContain("3 of 4 cannot be monitored");
    expect(message).toContain("x@b.com: This is an email address");
    expect(message).toContain("ftp://c.com: Give the domain only");
    expect(message).toContain("foo bar: Not a domain");
    expect(store.count(LIVE)).toBe(0);
  });

  test("has web URLs, which are read as the domains in them", async () => {
    const { domains } = newHarness();
    const enrolled = await domains.enrolText(
      LIVE,
      "https://www.a.com/contact?x=1\nHTTP://b.com:8080 https://b.com",
      [],
    );
    expect(enrolled.map(({ domain }) => domain.domain)).toEqual(["www.a.com", "b.com"]);
  });

  test("with six mistakes names all of them", async () => {
    const { domains } = newHarness();
    const message = await problemOf(domains.enrolText(LIVE, "b_1.c b_2.c b_3.c b_4.c b_5.c b_6.c", []));
    expect(message).toContain("b_6.c: ");
    // The page shows each on a line of its own.
    expect(message.split("\\n")).toHaveLength(6);
    expect(message).not.toContain("more");
  });

  test("names the first mistakes only, and long ones shortened", async () => {
    const { domains } = newHarness();
    const many = Array.from({ length: 7 }, (_, n) => `bad_${n}${"a".repeat(300)}.com`).join(" ");
    const message = await problemOf(domains.enrolText(LIVE, many, []));
    expect(message).toContain("And 2 more.");
    expect(message.length).toBeLessThan(1_200);
  });

  test("that is empty or too long is refused", async () => {
    const { domains } = newHarness();
    expect(await problemOf(domains.enrolText(LIVE, " ,\n;", []))).toContain("one or more domains");
    const many = Array.from({ length: ENROLLED_AT_ONCE_MAX + 1 }, (_, n) => `d${n}.com`).join("\n");
    expect(await problemOf(domains.enrolText(LIVE, many, []))).toContain(`these are ${ENROLLED_AT_ONCE_MAX + 1}`);
  });

  test("is enrolled although the DNS does not respond: the caller does not wait for all checks", async () => {
    const pending = Promise.withResolvers<never>();
    const { domains, clock, store } = newHarness({ check: () => pending.promise });
    const enrolling = domains.enrolText(LIVE, "a.com b.com", []);
    await clock.advance(10_000);
    expect((await enrolling).map(({ created }) => created)).toEqual([true, true]);
    expect(store.count(LIVE)).toBe(2);
  });
});

test("without a report host nothing can be enrolled, and the destination says so", async () => {
  const { domains } = newHarness({ reportHost: null });
  expect(await problemOf(domains.enrolText(LIVE, "a.com", []))).toContain("POSTWARDEN_REPORT_HOST");
  expect(domains.destination(LIVE)).toEqual({ reportHost: null, mailbox: null });
});

test("where a mailbox receives the reports, only its account can enroll domains, and the destination is the mailbox", async () => {
  const { domains } = newHarness({ reportHost: null, mailbox: "dmarc@corp.com" });
  expect(domains.destination(LIVE)).toEqual({ reportHost: "corp.com", mailbox: "dmarc@corp.com" });
  expect(await domains.enrolText(LIVE, "a.com", [])).toHaveLength(1);
  expect(await problemOf(domains.enrolText({ ...LIVE, accountId: "other" }, "a.com", []))).toContain("another account");
});
