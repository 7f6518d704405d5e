import { expect, test } from "bun:test";
import { isPublicSuffix, organisationalDomain } from "./organisational-domain.ts";

test.each([
  ["example.com", "example.com"],
  ["a.b.example.com", "example.com"],
  ["mail.example.co.uk", "example.co.uk"],
  ["a.b.c.example.kawasaki.jp", "c.example.kawasaki.jp"],
  ["www.city.kawasaki.jp", "city.kawasaki.jp"],
  ["mail.customer.github.io", "customer.github.io"],
  ["mail.xn--e1afmkfd.xn--p1ai", "xn--e1afmkfd.xn--p1ai"],
  ["x.xn--85x722f.xn--55qx5d.cn", "xn--85x722f.xn--55qx5d.cn"],
  ["mail.example.unheard-of", "example.unheard-of"],
  ["com", null],
  ["co.uk", null],
  ["github.io", null],
  ["localhost", null],
  ["[192.0.2.1]", null],
  ["[IPv6:2001:db8::1]", null],
])("the organisational domain of %s is %s", (domain, organisation) => {
  expect(organisationalDomain(domain)).toBe(organisation);
});

test.each([
  ["com", true],
  ["co.uk", true],
  ["github.io", true],
  ["xn--p1ai", true],
  ["example.com", false],
  ["city.kawasaki.jp", false],
  ["www.github.io", false],
])("%s is a public suffix: %p", (domain, expected) => {
  expect(isPublicSuffix(domain)).toBe(expected);
});
