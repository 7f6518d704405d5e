/** Longer hints are ignored: no greylisting waits that long, and a hostile server must not delay a verification. */
export const RETRY_HINT_MAX_S = 86_400;

const UNIT =
  "(s|secs?|seconds?|sekunden?|secondes?|segundos?|secondi|sec\\.|m|mins?|minutes?|minuten?|minutos?|minuti|min\\.|h|hrs?|hours?|stunden?|heures?|horas?|ore|uur|minut|sekund\\w?|godzin\\w?|分钟|分鐘|分|秒|минут\\S?|секунд\\S?|час\\S{0,2}|분|초)";

/** The number must belong to a request to retry: "timeout after 300 seconds" is none. */
// input ≤ 65,536 characters
const HINT = new RegExp(
  `(?:again|retry|back|wait|later|gr[ea]y-?list\\w*|defer\\w*|delay\\w*|resend|reconnect|erneut|spater|reessay\\w*|revenez|intent\\w*|reintent\\w*|tente|riprov\\w*|ponow\\w*|повтор\\S*|попроб\\S*)(?:[^.;!?\\d]|[.](?! )){0,40}?\\b(\\d{1,6})(?:\\.\\d+)? ?${UNIT}(?![a-z])`,
  "u",
);
const CLOCK_HINT = /(?:again|retry|back|wait|gr[ea]y-?list\w*)[^\d]{0,40}\b(\d{1,2}):([0-5]\d):([0-5]\d)\b/u;
// input ≤ 65,536 characters
const LEADING_HINT = new RegExp(
  `(?:^|[^\\d.])(\\d{1,6}) ?${UNIT} ?(?:后|後|later|spater|以降|and try|before retry|until)`,
  "u",
);

/** The wait that the server requests, in seconds, from folded text ("try again in 5 minutes"); undefined when it does not say. */
export const findRetryHint = (words: string): number | undefined => {
  if (!/\d/.test(words)) return undefined;
  const clock = CLOCK_HINT.exec(words);
  const match = clock ? null : (HINT.exec(words) ?? LEADING_HINT.exec(words));
  const seconds = clock
    ? Number(clock[1]) * 3600 + Number(clock[2]) * 60 + Number(clock[3])
    : Number(match?.[1] ?? 0) * secondsPer(match?.[2] ?? "s");
  return seconds > 0 && seconds <= RETRY_HINT_MAX_S ? seconds : undefined;
};

const secondsPer = (unit: string): number => {
  if (/^(?:m|分|минут|분)/u.test(unit)) return 60;
  if (/^(?:h|st|ore|uur|god|час)/u.test(unit)) return 3600;
  return 1;
};
