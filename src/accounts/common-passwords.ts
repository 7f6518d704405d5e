const wordsOf = (text: string): ReadonlySet<string> => new Set(text.trim().split(/\s+/));

/** Words that are common passwords, alone, doubled or with digits and signs behind them. */
const WORDS = wordsOf(`
  password passwort passwords pass passwd passphrase mypassword thepassword newpassword adminpassword rootpassword temppassword testpassword
  defaultpassword qwerty qwertz azerty qwertyuiop asdf asdfgh asdfghjkl zxcvbn zxcvbnm qazwsx qazwsxedc abc abcd abcdef letmein letmeinnow
  welcome hello helloworld changeme changemenow iloveyou iloveyouso iloveyoubaby iloveyouforever ilovemyself love lovely lover secret
  supersecret topsecret admin administrator root toor user guest default test temp demo login master access monkey dragon shadow sunshine
  princess football baseball basketball soccer hockey superman batman spiderman starwars pokemon minecraft fortnite trustno whatever freedom
  forever michael michelle jennifer jessica charlie jordan thomas daniel andrew ashley nicole anthony robert george liverpool manchester
  chelsea arsenal barcelona juventus realmadrid computer internet microsoft samsung google facebook apple iphone android linux windows
  summer winter spring autumn january february march april june july august september october november december monday friday
  blink godisgood jesuschrist jesus jesusislord ihateyou fuckyou fuckoff nothing cookie chocolate cheese banana orange killer hunter
  correcthorsebatterystaple postwarden postmaster hostmaster webmaster mailserver email company office a aa aaa q z`);

/** Other passwords of at least ten characters that are tried first. */
const PASSWORDS = wordsOf(`
  1q2w3e4r5t 1q2w3e4r5t6y 1q2w3e4r5t6y7u 1qaz2wsx3edc 1qazxsw23edc zaq12wsxcde3 zaq1zaq1xsw2 1qaz1qaz2wsx qazwsxedcrfv 12qwaszx34
  q1w2e3r4t5 q1w2e3r4t5y6 a1b2c3d4e5 1a2b3c4d5e a1s2d3f4g5 12345qwert 12345qwerty 123qweasdzxc 123qwe123qwe 123abc123abc 1234qwerasdf
  1234qwer1234 123456qwerty 1234567qwerty 123456789a 1234567890a 123456789abc 123456abcdef 123123123a 123123123123 1231231234
  112233445566 11223344556 1122334455 1234554321 123454321a 1212121212 1234512345 147258369a 1472583690 147258369147 159753456852
  1597534862 741852963a 7418529630 789456123a 7894561230 9876543210a 987654321a 9638527410 3216549870 0987654321q 5555566666 1111122222
  asdfghjkl123 poiuytrewq lkjhgfdsa123 mnbvcxz123 qweasdzxc123 qwe123asd456 iloveyou2u`);

const SEQUENCES = ["0123456789", "abcdefghijklmnopqrstuvwxyz", "qwertyuiopasdfghjklzxcvbnm"].flatMap((characters) =>
  [characters, [...characters].toReversed().join("")].map((one) => one.repeat(20)),
);

/** Other spellings that programs try. */
const spelledOut = (text: string): string =>
  text.replaceAll("@", "a").replaceAll("0", "o").replaceAll(/[$5]/g, "s").replaceAll("3", "e").replaceAll(/[1!]/g, "i");

// input ≤ 1,000 characters
const withoutDoubling = (text: string): string => /^(.+?)\1+$/s.exec(text)?.[1] ?? text;

/** Whether a password is among those that programs try first: common ones, sequences, and repetitions of few characters. */
export const isCommonPassword = (password: string): boolean => {
  const lower = password.toLowerCase();
  const word = withoutDoubling(lower.replace(/(?<![\d\p{P}\p{S}\s])[\d\p{P}\p{S}\s]+$/u, ""));
  return (
    PASSWORDS.has(lower) ||
    WORDS.has(word) ||
    WORDS.has(spelledOut(word)) ||
    new Set(lower).size < 4 ||
    SEQUENCES.some((sequence) => sequence.includes(lower))
  );
};
