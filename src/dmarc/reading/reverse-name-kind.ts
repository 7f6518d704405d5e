/** A server's name says so, even with its address in it. */
const SERVER =
  /(?:^|[.-])(?:mail|mx|smtp|mta|out|relay|server|srv|vps|vserver|dedi|dedicated|hosting|hosted|cloud|colo|web|www|static|business|biz)\d*(?=[.-])/;
const DYNAMIC =
  /(?:^|[.\d_-])(?:a?dsl|vdsl|x?dsl|dyn|dynamic|dynip|dhcp|pool|ppp|pppoe|dial|dialup|dialin|broadband|cable|catv|cpe|cust|customer|customers|client|clients|user|users|subs|subscriber|res|residential|mobile|lte|umts|gprs|abo|wireless|fiber|fibre|ftth|fttx|home)(?=[.\d_-])/;

/** Whether a name is one that a provider gives to the addresses of its customers at home: a dynamic word, or the address itself. */
export const isGenericName = (name: string, ip: string): boolean => {
  if (SERVER.test(name)) return false;
  return DYNAMIC.test(name) || holdsAddress(name, ip);
};

const holdsAddress = (name: string, ip: string): boolean => {
  if (ip.includes(":")) return false;
  const octets = ip.split(".");
  const numbers = new Set((name.match(/\d+/g) ?? []).map(Number));
  const hex = octets.map((octet) => Number(octet).toString(16).padStart(2, "0")).join("");
  const padded = octets.map((octet) => octet.padStart(3, "0")).join("");
  const isWritten = name.includes(hex) || name.includes(padded);
  return isWritten || octets.every((octet) => numbers.has(Number(octet)));
};
