import { expect, test } from "bun:test";
import { findRetryHint } from "./replies.ts";
import { foldText } from "./reply-rules/signs.ts";

test.each([
  ["Greylisted, try again in 300 seconds", 300],
  ["Greylisted for 5 minutes", 300],
  ["Greylisting in action, please come back in 00:04:58", 298],
  ["please try again in 4 minutes", 240],
  ["retry after 30s", 30],
  ["Please try again in 1 hour.", 3600],
  ["Deferred, wait 10 min", 600],
  ["Bitte versuchen Sie es erneut in 5 Minuten", 300],
  ["Liste grise, revenez dans 5 minutes", 300],
  ["intente de nuevo, reintente en 15 minutos", 900],
  ["Серый список, попробуйте через 5 минут", 300],
  ["请在300秒后重试", 300],
  ["try again in 86400 seconds", 86_400],
])("%p: %p seconds", (text, seconds) => {
  expect(findRetryHint(foldText(text))).toBe(seconds);
});

test.each([
  "Greylisted",
  "try again later",
  "timeout after 300 seconds",
  "try again in 0 seconds",
  "try again in 86401 seconds",
  "try again in 999999 hours",
  "Greylisted, see http://postgrey.schweikert.ch/help/example.com.html",
  "too many mails in 60 seconds",
])("%p gives no hint that is believed", (text) => {
  expect(findRetryHint(foldText(text))).toBeUndefined();
});
