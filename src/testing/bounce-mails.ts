import { signHeader, type HeaderSigning } from "./signed-message.ts";

export interface DeliveryReportMail {
  /** The fields of each recipient, as they stand in the report. */
  readonly recipients: readonly string[];
  /** The message that came back, or its header; null for none. */
  readonly returned: string | null;
  /** `rfc822` or `global`. */
  readonly form?: "rfc822" | "global";
  readonly from?: string;
}

interface RecipientFields {
  readonly status?: string;
  readonly action?: string;
  readonly diagnostic?: string;
  /** A field more. */
  readonly more?: string;
}

/** What a recipient of a report of Postfix looks like. */
export const failedRecipient = (
  address: string,
  { status = "5.1.1", action = "failed", diagnostic, more = "" }: RecipientFields = {},
): string =>
  [
    `Final-Recipient: rfc822; ${address}`,
    ...(more === "" ? [] : [more]),
    `Action: ${action}`,
    `Status: ${status}`,
    ...(diagnostic === ""
      ? []
      : [`Diagnostic-Code: ${diagnostic ?? `smtp; 550 ${status} <${address}>: User unknown`}`]),
  ].join("\r\n");

/** A delivery status notification (RFC 3464). */
export const deliveryReportMail = ({
  recipients,
  returned,
  form = "rfc822",
  from = "MAILER-DAEMON@mx.b.example",
}: DeliveryReportMail): string => {
  const part = (type: string, text: string) => `--=b\r\nContent-Type: ${type}\r\n\r\n${text}\r\n`;
  return [
    `From: ${from}\r\nTo: bounces@shop.example\r\nSubject: Undelivered Mail Returned to Sender\r\nMIME-Version: 1.0\r\n`,
    'Content-Type: multipart/report; report-type=delivery-status; boundary="=b"\r\n\r\n',
    part("text/plain", "This is the mail system. Your message could not be delivered.\r\n"),
    part(
      form === "global" ? "message/global-delivery-status" : "message/delivery-status",
      ["Reporting-MTA: dns; mx.b.example\r\nArrival-Date: Thu, 1 Jan 2026 00:00:00 +0000", ...recipients, ""].join(
        "\r\n\r\n",
      ),
    ),
    ...(returned === null ? [] : [part(form === "global" ? "message/global" : "message/rfc822", returned)]),
    "--=b--\r\n",
  ].join("");
};

/** A message of `shop.example` to one recipient, signed. */
export const signedMessageTo = (to: string, signing: HeaderSigning = {}): string =>
  `${signHeader(
    [
      ["From", "Shop <news@shop.example>"],
      ["To", to],
      ["Subject", "Your order"],
    ],
    signing,
  )}\r\nHello\r\n`;

/** The report of a bounce of a message that was ours. */
export const bounceMailOf = (address: string, options: RecipientFields = {}): string =>
  deliveryReportMail({ recipients: [failedRecipient(address, options)], returned: signedMessageTo(address) });
