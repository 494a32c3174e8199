// Which cookies belong to the management API, in requests of clients and in responses of targets.
import { describe, expect, test } from "bun:test";
import { ManagementCookies } from "../../../src/http/management-cookies.ts";

const LIVE = "L".repeat(43);
const cookies = new ManagementCookies(
  "01a1fd84-2dbf-73d8-ab7a-d2f60badcafe",
  (value) => value === LIVE,
);
const OWN = "sluice_session_0badcafe";

test("names hold the last eight digits of the id, and a prefix over HTTPS", () => {
  expect([false, true].map((isSecure) => cookies.session(isSecure))).toEqual([
    OWN,
    `__Host-${OWN}`,
  ]);
  expect([false, true].map((isSecure) => cookies.signIn(isSecure))).toEqual([
    `${OWN}_sso`,
    `__Host-${OWN}_sso`,
  ]);
});

const kept = [
  { field: "", why: "nothing" },
  { field: "a=1; b=2", why: "others" },
  { field: "a=1;b=2 ;; c", why: "others, as they were written" },
  { field: "sluice_session_12345678=x", why: "that of another installation" },
  { field: "__Host-sluice_session_12345678=x", why: "the same over HTTPS" },
  { field: "sluice_session=x", why: "the former name with a value that opens nothing" },
  { field: `__Host-sluice_session=${LIVE}`, why: "the former name never had a prefix" },
  { field: `${OWN}0=x; ${OWN}-x=1; x${OWN}=1`, why: "longer names" },
  { field: OWN.slice(0, -1), why: "a shorter name" },
  { field: OWN.toUpperCase(), why: "names have a case" },
  { field: `Sluice_session_0badcafe=x`, why: "names have a case" },
  { field: `x=${OWN}`, why: "as a value" },
  { field: `x="${OWN}=1"`, why: "as a value in quotes" },
  { field: OWN, why: "without a value it opens nothing" },
  { field: "sluice_sticky=x; sluice_split=y; __Host-sluice_app=z", why: "those of plugins" },
  { field: `__Secure-${OWN}=x`, why: "another prefix" },
];
test.each(kept)("$field is forwarded unchanged: $why", ({ field }) => {
  expect(cookies.without(field)).toBe(field);
  expect(cookies.namesIn(field)).toEqual([]);
});

const taken = [
  { field: `${OWN}=x`, left: null, why: "nothing is left" },
  { field: `__Host-${OWN}=x`, left: null, why: "over HTTPS" },
  { field: `${OWN}_sso=x; a=1`, left: "a=1", why: "that of a sign-in" },
  { field: `a=1; __Host-${OWN}_sso=x`, left: "a=1", why: "the same over HTTPS" },
  { field: `sluice_session=${LIVE}; a=1`, left: "a=1", why: "the former name, while it lives" },
  { field: `sluice_session="${LIVE}"`, left: null, why: "the same in quotes" },
  { field: `a=1; ${OWN}=x; b="2"`, left: 'a=1; b="2"', why: "in the middle" },
  { field: `a=1;${OWN}=x;b=2`, left: "a=1; b=2", why: "without spaces" },
  { field: `a=1; \t${OWN} \t= x ; b`, left: "a=1; b", why: "with white space" },
  { field: `${OWN}=x; ${OWN}=y; __Host-${OWN}=z`, left: null, why: "several" },
  { field: `${OWN}=`, left: null, why: "without a value" },
  { field: `${OWN}=a=b==; c=d=`, left: "c=d=", why: "with signs in the value" },
  { field: `x="; ${OWN}=y; z="`, left: 'x="; z="', why: "quotes join no pairs" },
  { field: `;; ${OWN}=x ;`, left: null, why: "empty pairs" },
  {
    field: `sluice_session_12345678=x; ${OWN}=y`,
    left: "sluice_session_12345678=x",
    why: "beside that of another installation",
  },
  {
    field: `sluice_session=other; sluice_session=${LIVE}`,
    left: "sluice_session=other",
    why: "the former name twice",
  },
];
test.each(taken)("$field is reduced to $left: $why", ({ field, left }) => {
  expect(cookies.without(field)).toBe(left);
  expect(cookies.namesIn(field)).not.toEqual([]);
});

describe("a field of Set-Cookie", () => {
  const own = [
    `${OWN}=x`,
    `${OWN}=`,
    `${OWN}=x; Path=/; Domain=example.com; HttpOnly`,
    `__Host-${OWN}=x; Secure; Path=/`,
    `${OWN}_sso=x; Path=/api`,
    ` \t${OWN} = x`,
    `=${OWN}=x`,
    ` = ${OWN}=x`,
    `sluice_session=${LIVE}`,
    `=sluice_session="${LIVE}"; Path=/api`,
  ];
  test.each(own)("%j is rejected from a target", (field) => {
    expect(cookies.isSetBy(field)).toBe(true);
  });

  const others = [
    "a=1",
    `a=1; ${OWN}=x`,
    `a=${OWN}=x`,
    `a=1; Path=/${OWN}`,
    "sluice_session=x",
    "sluice_session_12345678=x; Path=/",
    `${OWN}x=1`,
    "sluice_sticky=x",
    "",
    ";",
  ];
  test.each(others)("%j is the target's own", (field) => {
    expect(cookies.isSetBy(field)).toBe(false);
  });
});

test("a session cookie is read under each of the three names, in order", () => {
  const field = `${OWN}=a; x=1; sluice_session="b"; __Host-${OWN}=c; ${OWN}_sso=d; ${OWN}=e`;
  expect(cookies.sessionsIn(field)).toEqual([
    { name: OWN, value: "a", isSecure: false },
    { name: "sluice_session", value: "b", isSecure: false },
    { name: `__Host-${OWN}`, value: "c", isSecure: true },
    { name: OWN, value: "e", isSecure: false },
  ]);
  expect(cookies.sessionsIn(null)).toEqual([]);
  expect(cookies.sessionsIn("a=1")).toEqual([]);
});
