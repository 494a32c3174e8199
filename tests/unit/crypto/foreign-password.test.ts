// Hashes of other programs: those that openssl and htpasswd print, and texts that are none.
import { describe, expect, test } from "bun:test";
import {
  passwordHashProblem,
  verifyForeignPassword,
} from "../../../src/crypto/foreign-password.ts";

const LONG = "a password of more than 64 bytes, which is more than one block of SHA-256 takes";

describe("a recorded hash", () => {
  test.each([
    ["secret", "$apr1$saltsalt$LrttParrLPdxvgutaSXWJ0"],
    ["x", "$apr1$ab$eIePjsejfBGR8ITtu2z0U1"],
    ["Schlüssel für alle", "$apr1$./AZaz09$dhru9E/sCndXqJ6qvV/xt1"],
    [LONG, "$apr1$abcdefgh$Lf29OHBHL0LivaenilAUW1"],
    ["secret", "$1$saltsalt$9xy1btjgzLYfb7hivXtC//"],
    ["x", "$1$ab$e2KlfqG5YBMTjSz7XF.Eu1"],
    ["Schlüssel für alle", "$1$./AZaz09$sd9.4Rf5KH4TvletAM07W."],
    [LONG, "$1$abcdefgh$4GwcQZXMCcELG7tiyIi4a1"],
    ["secret", "$5$saltsalt$0IyaXrmV7.sGNS6tirgqHLqX/G.FBvgkYA.lpPdS5sA"],
    ["x", "$5$ab$5ydlOaPxAq0VpamGFK.BZgHF7HlR0erJsH.F7VB19f0"],
    ["Schlüssel für alle", "$5$./AZaz09$Q8MJVFwp1LWBWtbzB/ZRUIKlakA.F6XycHwAUGZwKc8"],
    [LONG, "$5$abcdefgh$X8hz4QRIsOpx7EqUD1ldi66QtS6OswUnWGHrsyyHNC4"],
    [
      "secret",
      "$6$saltsalt$TVLlQcbpFVof5W3Yz4DTP6gRstiNuHwwTt6GLc1E5n0U0aDehy0S5knV8wiOQSpT0Y77vwPZN.Pq.H91p5hVO1",
    ],
    [
      "x",
      "$6$ab$jnZj29NS/hK2GaouP6AGMIBwD6owZFRejcn9QRdlwSjZaVr.fR9dH2TXrKL/PaacUXwtGfI.4O9zxvy2k6fbE1",
    ],
    [
      "Schlüssel für alle",
      "$6$./AZaz09$0IGSbVQ7dyIEKA4y2Hb/4BVRJxJkcZsbJXvQILRkeabVP2JnNvvNN0s17ryNnM5LsyRtXndmWTCLcwAIq1FnI/",
    ],
    [
      LONG,
      "$6$abcdefgh$KdE6zj6i8Nc5Cey9fRqHGMy3VFsyNj6Kfdj6VTzC9mzKxHh0ZTcHjuCwTllMoO0clJE4kEiu3twuppgOD/Qsw/",
    ],
    [
      "fifteen letters",
      "$5$rounds=1000$0123456789abcdef$2BC.O/yHdt0BGNWkOax3YSVjhq8q9tR94OvxRqzLiD1",
    ],
    ["secret", "$apr1$FDlmtepS$kHiTOpC2atUmvzX5sDrfO1"],
    ["secret", "{SHA}5en6G6MezRroT3XKqkdPOmY/BfQ="],
    ["secret", "$5$75qWxTwD04RGCuRq$ci5Gs8JrZgUEsRh3GHs2KoQIw8PEwt1xGh5ZL19Y/O5"],
    [
      "secret",
      "$6$rounds=12345$NnmLvtTuohWKfgXx$8LoM7fJdJ8esv8ePEjBkE.Xs4F/fHCwer7tobhc/qADZNDLGHyx4uBrZ7s/Ke6f4aYN.Gq8Gz/WyLDxw/uUmr1",
    ],
    ["secret", "$2y$04$7Auwmj/t7OLdL4BrYhklQOSb8knMrAIljPJhm8nj6PHCU04nRS7C."],
    ["secret", "{SSHA}gVK8WC9YyFT1gMsQHTGCgT3sSv5zYWx0"],
  ])("%s", async (password, hash) => {
    expect(passwordHashProblem(hash)).toBeNull();
    expect(await verifyForeignPassword(password, hash)).toBe(true);
    for (const wrong of ["", `${password}x`, password.toUpperCase(), `${password}\0`])
      expect(await verifyForeignPassword(wrong, hash)).toBe(false);
  });
});

describe("what is no hash, or too expensive", () => {
  const digits = (count: number) => "a".repeat(count);
  test.each([
    ["$apr1$x$y", "must be a hash of"],
    [`$apr1$123456789$${digits(22)}`, "must be a hash of"],
    [`$2$x$${digits(22)}`, "must be a hash of"],
    [`$5$x$${digits(86)}`, "must be a hash of"],
    [`$6$x$${digits(43)}`, "must be a hash of"],
    [`$6$12345678901234567$${digits(86)}`, "must be a hash of"],
    [`$6$rounds=999$x$${digits(86)}`, "from 1000 to 200000 rounds"],
    [`$6$rounds=200001$x$${digits(86)}`, "from 1000 to 200000 rounds"],
    [`$6$rounds=0005000$x$${digits(86)}`, "must be a hash of"],
    [`$y$j9T$x$${digits(43)}`, "must be a hash of"],
    ["{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9==", "must be a hash of"],
    ["{SSHA}W6ph5Mm5Pz8GgiULbPgzG37mj9g=", "must be a hash of"],
    ["{SHA}W6ph5Mm5Pz8GgiULbPgzG37mj9hhYmM=", "must be a hash of"],
    ["{PLAIN}secret", "must be a hash of"],
    ["secret", "must be a hash of"],
    ["abJnggxhB/yWI", "must be a hash of"],
    ["$2y$15$MhkTtlyhT7jGs040w89tq.moFGeyONR4LfL4X3wzJe7AffwYOLTo6", "cost from 4 to 14"],
  ])("%s", async (hash, why) => {
    expect(passwordHashProblem(hash)).toContain(why);
    expect(passwordHashProblem(hash)).not.toContain(hash);
    expect(await verifyForeignPassword("secret", hash)).toBe(false);
  });

  test.each(["$5$rounds=1000$x$", "$5$rounds=200000$x$"])("the border %s is valid", (start) => {
    expect(passwordHashProblem(start + digits(43))).toBeNull();
  });
});

describe("a check", () => {
  const hash = (rounds: number) => `$6$rounds=${rounds}$x$${"a".repeat(86)}`;

  test("lets the event loop run in between", async () => {
    let turns = 0;
    let isDone = false;
    const count = () => {
      turns += 1;
      if (!isDone) setImmediate(count);
    };
    setImmediate(count);
    await verifyForeignPassword("secret", hash(200_000));
    isDone = true;
    expect(turns).toBeGreaterThan(5);
  });

  test("of a password that is too long is false", async () => {
    expect(await verifyForeignPassword("x".repeat(513), hash(1000))).toBe(false);
  });
});
