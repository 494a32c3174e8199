// Which passwords are rejected, with which message, and that no message contains the password.
import { describe, expect, test } from "bun:test";
import { checkPassword } from "../../../src/auth/password.ts";
import { ApiError } from "../../../src/model/error.ts";

const about = ["Root.Admin@Example.org", "Margarethe  Steiff"];

function problemOf(password: unknown): string | null {
  try {
    checkPassword(password, about);
    return null;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    expect(error.status).toBe(400);
    return error.message;
  }
}

const SHORT = "password: must have at least 10 characters";
const LONG = "password: must have at most 1024 characters";
const COMMON = "password: is too common";
const OWN = "password: must not be the e-mail address or the name of the user";

describe("rejected", () => {
  test.each([
    { why: "null", password: null, problem: "password: must be a string" },
    { why: "a number", password: 1234567890, problem: "password: must be a string" },
    { why: "empty", password: "", problem: SHORT },
    { why: "nine characters", password: "kx7!pQ2zv", problem: SHORT },
    { why: "nine characters of two units each", password: "🐎🐄🐖🐏🐐🐓🦆🐇🐈", problem: SHORT },
    { why: "1025 characters", password: "kx7!p".repeat(205), problem: LONG },
    { why: "a megabyte", password: "kx7!p".repeat(200_000), problem: LONG },
    {
      why: "half a character",
      password: "kx7!pQ2zv\ud800",
      problem: "password: must be valid Unicode",
    },
    { why: "the e-mail address", password: "root.admin@example.ORG", problem: OWN },
    { why: "the name", password: "margarethe  steiff", problem: OWN },
    { why: "a common one", password: "qwertyuiop", problem: COMMON },
    { why: "a common one in capitals", password: "TERMINATOR", problem: COMMON },
    { why: "a common one with a digit", password: "Terminator1", problem: COMMON },
    { why: "a common word with a year", password: "Password2026!", problem: COMMON },
    { why: "digits before a common word", password: "123456admin", problem: COMMON },
    { why: "a common word again and again", password: "adminadmin", problem: COMMON },
    { why: "that with a digit", password: "secretsecret1", problem: COMMON },
    { why: "signs for letters", password: "P@ssw0rd!!!", problem: COMMON },
    { why: "one character", password: "zzzzzzzzzzzz", problem: COMMON },
    { why: "three characters", password: "x9!x9!x9!x9!", problem: COMMON },
    { why: "the alphabet", password: "abcdefghijkl", problem: COMMON },
    { why: "backwards", password: "9876543210", problem: COMMON },
    { why: "spaces", password: "            ", problem: COMMON },
    { why: "our own name", password: "Sluice-2026", problem: COMMON },
  ])("$why", ({ password, problem }) => {
    expect(problemOf(password)).toBe(problem);
  });
});

describe("accepted", () => {
  test.each([
    { why: "ten characters", password: "kx7!pQ2zvR" },
    { why: "1024 characters", password: `${"kx7!pQ2zvRw".repeat(93)}a` },
    { why: "ten characters of two units each", password: "🐎🐄🐖🐏🐐🐓🦆🐇🐈🐁" },
    { why: "words in a row", password: "correct horse battery" },
    { why: "two common words", password: "dragon thunder pepper" },
    { why: "any script", password: "длинный пароль для всех" },
    { why: "the name and more", password: "margarethe steiff's bear" },
  ])("$why", ({ password }) => {
    expect(problemOf(password)).toBeNull();
  });
});

test("every pattern is fast on a long password", () => {
  for (const part of ["a", "ab", "!", "0a", "password"]) {
    const text = part.repeat(1024).slice(0, 1023);
    expect(problemOf(`${text}~`)).toBeOneOf([null, COMMON]);
  }
});
