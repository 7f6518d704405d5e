import { expect, test } from "bun:test";
import { isReportersDomain } from "./report-trust.ts";

test.each([
  ["google.com", "google.com", "noreply-dmarc-support@google.com", true],
  ["google.com", "Google Inc.", null, true],
  ["yahoo.com", "Yahoo", "dmarchelp@yahooinc.com", true],
  ["microsoft.com", "Enterprise Outlook", "dmarcreport@microsoft.com", true],
  ["mail.ru", "Mail.Ru", "dmarc_support@corp.mail.ru", true],
  ["fastmaildmarc.com", "Fastmail Pty Ltd", "reports@fastmaildmarc.com", true],
  ["receiver.example", "mx.receiver.example", null, true],
  ["receiver.example", null, "<dmarc@mail.receiver.example>", true],
  // The name decides where it is one: anybody writes any contact address.
  ["attacker.example", "google.com", "a@attacker.example", false],
  ["attacker.example", "Google Inc.", "a@attacker.example", false],
  ["attacker.example", "Enterprise Outlook", "a@attacker.example", false],
  ["attacker.example", "receiver.example", "a@attacker.example", false],
  ["attacker.example", "Some Receiver", "dmarc@receiver.example", false],
  ["google.example", "google", null, false],
  ["receiver.example", null, null, false],
  ["receiver.example", "Some Receiver", "not an address", false],
])("a mail of %s is that of the reporter %s <%s>: %s", (author, orgName, email, expected) => {
  expect(isReportersDomain(author, { orgName, email })).toBe(expected);
});
