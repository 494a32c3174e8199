// Request lines, Hosts, methods and field lines in every odd form, over raw sockets: rejected requests never reach the origin.
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { engines } from "../../support/engines.ts";
import {
  type LenientScene,
  refused,
  served,
  startLenientScene,
} from "../../support/lenient-scene.ts";

describe.each(engines)("%s engine:", (engine) => {
  let scene: LenientScene;
  beforeAll(async () => {
    scene = await startLenientScene({ listener: { engine } });
  });
  afterAll(() => scene.stop());

  const get = (target: string, host = "h") => `GET ${target} HTTP/1.1\r\nHost: ${host}\r\n\r\n`;
  const withField = (line: string) => `GET /a HTTP/1.1\r\nHost: h\r\n${line}\r\n\r\n`;

  describe("a Host that is not one valid authority gets 400 before routing", () => {
    const rows: [host: string, why: string][] = [
      ["", "empty"],
      ["  ", "blank"],
      ["u@x", "user information"],
      ["u:p@x", "user information"],
      ["u@x/y?", "makes Bun's req.url relative"],
      ["a,b", "a list, as two fields become"],
      ["a, b", "a list"],
      ["a b", "a space"],
      ["/", "a path"],
      ["h/p", "a path"],
      ["h?q", "a query"],
      ["h#f", "a fragment"],
      ["h\\x", "a backslash, which browsers read as a slash"],
      ["http://h", "a URL"],
      ["h:x", "a port that is no number"],
      ["h:-1", "a negative port"],
      ["h:65536", "a port over 16 bits"],
      ["h:99999", "a port over 16 bits"],
      ["h:0000080", "a port of too many digits"],
      ["h:80:80", "two ports"],
      ["h:80,h:81", "a list with ports"],
      ["[::1", "an open bracket"],
      ["::1]", "a closed bracket"],
      ["::1", "IPv6 without brackets"],
      ["[fe80::1%25eth0]", "a zone"],
      ["[1.2.3.4]", "IPv4 in brackets"],
      ["[::1]x", "rubbish behind brackets"],
      ["h%41", "an escape"],
      ["h%00", "an escape"],
      ["h..x", "an empty label"],
      [".h", "an empty label"],
      [".", "only a dot"],
      ["999.1.1.1", "no IPv4 address, though it looks like one"],
      ["0x7f.1", "an IPv4 address to browsers only"],
      ["127.1", "an IPv4 address to browsers only"],
      ["\xe9", "not ASCII"],
      ["h;x", "a semicolon"],
      ["a'b", "a quote"],
      ['a"b', "a quote"],
      ["<h>", "angle brackets"],
      ["*", "a star"],
      ["a".repeat(254), "longer than any name"],
    ];
    test.each(rows)("%j: %s", async (host) => {
      const seen = await scene.probe(get("/a", host));
      expect(seen).toMatchObject(refused("400"));
      expect(seen.answers[0]?.header("proxy-status")).toContain("http_request_error");
    });

    test.each([
      ["Host: h\r\nHost: g", "two names"],
      ["Host: h\r\nHost: h", "the same name twice (RFC 9112 section 3.2)"],
      ["Host: \r\nHost: h", "an empty one first"],
      ["Host: h\r\nhOST: g", "in another case"],
    ])("two Hosts %j: %s", async (fields) => {
      expect(await scene.probe(`GET /a HTTP/1.1\r\n${fields}\r\n\r\n`)).toMatchObject(
        refused("400"),
      );
    });

    test("no Host: Bun responds itself, for HTTP/1.1", async () => {
      expect(await scene.probe("GET /a HTTP/1.1\r\n\r\n")).toMatchObject(refused("400"));
      expect(await scene.probe("GET /a HTTP/1.1\r\nX-Host: h\r\n\r\n")).toMatchObject(
        refused("400"),
      );
    });

    test("no Host in HTTP/1.0, which allows it: no route could be chosen by name", async () => {
      expect(await scene.probe("GET /a HTTP/1.0\r\n\r\n")).toMatchObject(refused("400"));
    });

    test.each([
      "h",
      "H",
      "h.",
      "h:80",
      "h:",
      "a_b",
      "a-b.c",
      "1.2.3.4",
      "[::1]",
      "[::1]:80",
      "h\t",
      "  h",
    ])("%j is valid and reaches the origin as sent", async (host) => {
      const seen = await scene.probe(get("/a", host));
      expect(seen).toMatchObject(served(["GET /a"]));
      expect(seen.executed[0]?.header("host")).toBe(host.trim());
    });
  });

  describe("a request target that is no plain path is rejected", () => {
    test.each([
      [
        "/x#.png",
        "400",
        "a fragment, which slips past rules that look at the end (Envoy CVE-2021-32779)",
      ],
      ["/x?a#.png", "400", "a fragment behind a query"],
      ["/#", "400", "an empty fragment"],
      ["/x%23.png", "200", "an escaped one is part of the path"],
      ["*", "400", "only OPTIONS may say that, and Bun cannot"],
      ["a", "400", "no slash"],
      ["?q", "400", "no path"],
      ["", "400", "nothing"],
      [" /a", "400", "two spaces"],
      ["/a b", "505", "a space inside"],
      ["/a\tb", "505", "a tab inside"],
      ["/a\0b", "505", "NUL"],
      ["/a\x01b", "505", "a control character"],
      ["/a%00b", "400", "an escaped NUL"],
      ["/a%zz", "400", "no escape"],
      ["/a%", "400", "no escape"],
      ["ftp://h/x", "400", "another scheme"],
      ["//", "200", "repeated slashes are passed on"],
    ])("%j gets %s: %s", async (target, status) => {
      const seen = await scene.probe(get(target));
      if (status === "200") expect(seen).toMatchObject(served([`GET ${target}`]));
      // Bun.serve takes white space for the end of the target.
      else expect(seen).toMatchObject(refused(engine === "bun" ? status : "400"));
    });

    test.each([
      ["http://other/x?y", "/x?y"],
      ["http://other", "/"],
      ["http://u:p@other/x", "/x"],
      ["https://h/x", "/x"],
      ["HTTP://OTHER/x", "/x"],
    ])(
      "absolute form %s: routed and forwarded by the Host field, never by the name in it",
      async (target, path) => {
        const seen = await scene.probe(get(target, "h"));
        // RFC 9112 section 3.2.2, tested below.
        if (engine === "sluice") return;
        expect(seen).toMatchObject(served([`GET ${path}`]));
        expect(seen.executed[0]?.header("host")).toBe("h");
        expect(seen.executed[0]?.head).not.toMatch(/other/i);
      },
    );

    if (engine === "sluice") {
      test.each([
        ["http://other/x?y", "/x?y", "other"],
        ["http://other", "/", "other"],
        ["http://other?y", "/?y", "other"],
        ["https://h/x", "/x", "h"],
        ["HTTP://OTHER:80/x", "/x", "OTHER:80"],
      ])("absolute form %s: its name replaces Host (RFC 9112 section 3.2.2)", async (...row) => {
        const [target, path, host] = row;
        const seen = await scene.probe(get(target, "h"));
        expect(seen).toMatchObject(served([`GET ${path}`]));
        expect(seen.executed[0]?.header("host")).toBe(host);
      });

      test.each(["http://u:p@other/x", "http:///x", "http://a b/x", "http:other", "http://h#x"])(
        "absolute form %s gets 400",
        async (target) => {
          expect(await scene.probe(get(target, "h"))).toMatchObject(refused("400"));
        },
      );
    }

    test("absolute form without Host is rejected", async () => {
      expect(await scene.probe("GET http://h/x HTTP/1.1\r\n\r\n")).toMatchObject(refused("400"));
    });
  });

  describe("methods", () => {
    test.each([
      "DELETE",
      "OPTIONS",
      "PATCH",
      "POST",
      "PUT",
      "PROPFIND",
      "PROPPATCH",
      "MKCOL",
      "COPY",
      "MOVE",
      "LOCK",
      "UNLOCK",
      "REPORT",
      "SEARCH",
      "QUERY",
      "PURGE",
      "MERGE",
      "M-SEARCH",
      "NOTIFY",
      "SUBSCRIBE",
      "UNSUBSCRIBE",
      "ACL",
      "BIND",
      "REBIND",
      "UNBIND",
      "LINK",
      "UNLINK",
      "MKCALENDAR",
      "MKACTIVITY",
      "CHECKOUT",
      "SOURCE",
    ])("%s passes", async (method) => {
      expect(await scene.probe(`${method} /a HTTP/1.1\r\nHost: h\r\n\r\n`)).toMatchObject(
        served([`${method} /a`]),
      );
    });

    test.each(["FOO", "get", "GETX", "G", "X-Y", "PRI"])(
      "%s, which Bun does not know: the connection is closed",
      async (method) => {
        const seen = await scene.probe(`${method} /a HTTP/1.1\r\nHost: h\r\n\r\n`);
        // Our own engine passes every token.
        if (engine === "sluice") expect(seen).toMatchObject(served([`${method} /a`]));
        else expect(seen).toMatchObject(refused("closed"));
      },
    );

    test.each([
      ["CONNECT h:443 HTTP/1.1", "a tunnel"],
      ["CONNECT /a HTTP/1.1", "the target would see a tunnel where we see a request"],
      ["G{T /a HTTP/1.1", "no token"],
      [" GET /a HTTP/1.1", "a space first"],
    ])("%s gets 400: %s", async (line) => {
      expect(await scene.probe(`${line}\r\nHost: h\r\n\r\n`)).toMatchObject(refused("400"));
    });

    test("OPTIONS * is for the whole server: Bun and Node refuse it", async () => {
      const seen = await scene.probe("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n");
      expect(seen).toMatchObject(engine === "sluice" ? served(["OPTIONS *"]) : refused("400"));
    });

    test.each(["", "Content-Length: 0\r\n", "Max-Forwards: 0\r\n"])(
      "TRACE gets 405 with Allow, and reaches no target: %j",
      async (line) => {
        const seen = await scene.probe(
          `TRACE /a HTTP/1.1\r\nHost: h\r\nCookie: a=1\r\n${line}\r\n`,
        );
        expect(seen).toMatchObject(refused("405"));
        expect(seen.answers[0]?.header("allow")).toBe(
          "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS",
        );
        expect(seen.answers[0]?.body).not.toContain("a=1");
      },
    );

    test.each(["GET", "HEAD"])(
      "a %s with a body gets 400 where Bun hides the body, since dropping it could change the request; else it is forwarded",
      async (method) => {
        for (const body of [
          "Content-Length: 2\r\n\r\nab",
          "Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n",
        ]) {
          const seen = await scene.probe(`${method} /a HTTP/1.1\r\nHost: h\r\n${body}`);
          const isForwarded = engine !== "bun";
          expect(seen).toMatchObject(isForwarded ? served([`${method} /a`]) : refused("400"));
          if (isForwarded) expect(seen.executed[0]?.body).toBe("ab");
        }
        const none = await scene.probe(
          `${method} /a HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n`,
        );
        expect(none).toMatchObject(served([`${method} /a`]));
      },
    );
  });

  describe("versions and request lines", () => {
    test.each([
      ["GET /a HTTP/1.2", "505", "a version that is not spoken"],
      ["GET /a HTTP/2.0", "505", "a version of another syntax"],
      ["GET /a HTTP/0.9", "505", "an old version"],
      ["GET /a HTTP/1.10", "505", "two digits"],
      ["GET /a http/1.1", "505", "in lower case"],
      ["GET /a HTTP/1.1 ", "505", "a space behind"],
      ["GET /a", "505", "HTTP/0.9"],
      ["GET /a\tHTTP/1.1", "505", "a tab between"],
      ["GET\t/a\tHTTP/1.1", "505", "tabs between"],
      ["GET /a  HTTP/1.1", "505", "two spaces"],
      ["GET /a HTTP/1.1\r", "505", "CR before the line end"],
    ])("%j gets %s: %s", async (line, status) => {
      const seen = await scene.probe(`${line}\r\nHost: h\r\n\r\n`);
      expect(seen.outcome).toMatch(new RegExp(`^(?:${status}|400)$`));
      expect(seen).toMatchObject({ lines: [], ambiguous: [], canary: "200 /canary" });
    });

    test.each([
      ["GET /a HTTP/1.1\nHost: h\n\n", "bare LF everywhere"],
      ["GET /a HTTP/1.1\nHost: h\r\n\r\n", "bare LF behind the request line"],
      ["GET /a HTTP/1.1\r\nHost: h\nX: y\r\n\r\n", "bare LF behind a field"],
      ["GET /a HTTP/1.1\r\nHost: h\r\n\n", "bare LF as empty line"],
      ["GET /a HTTP/1.1\rHost: h\r\r", "bare CR everywhere"],
      ["GET /a HTTP/1.1\r\n Host: h\r\n\r\n", "white space before the first field"],
      ["\nGET /a HTTP/1.1\r\nHost: h\r\n\r\n", "a bare LF first"],
      ["\r\rGET /a HTTP/1.1\r\nHost: h\r\n\r\n", "bare CRs first"],
    ])("%j is rejected: %s", async (bytes) => {
      const seen = await scene.probe(bytes, { answers: 2 });
      expect(seen.outcome).toMatch(/^(?:400|505)$/);
      expect(seen).toMatchObject({
        lines: [],
        ambiguous: [],
        canary: "200 /canary",
        isClosed: true,
      });
    });
  });

  test("an empty line first is ignored, but by Bun.serve (RFC 9112 section 2.2)", async () => {
    const seen = await scene.probe("\r\nGET /a HTTP/1.1\r\nHost: h\r\n\r\n");
    expect(seen).toMatchObject(engine === "bun" ? refused("400") : served(["GET /a"]));
  });

  describe("field lines that RFC 9112 section 5 forbids get 400", () => {
    test.each([
      ["X-A : b", "space before the colon"],
      ["X-A\t: b", "tab before the colon"],
      ["X A: b", "a space in the name"],
      ["X(a): b", "a delimiter in the name"],
      ["X@: b", "a delimiter in the name"],
      [": b", "no name"],
      ["X-A", "no colon"],
      ["X\xe9: b", "a name that is not ASCII"],
      ["X\0A: b", "NUL in the name"],
      ["X\r: b", "CR in the name"],
      ["X-A: b\0c", "NUL in the value"],
      ["X-A: b\x01c", "a control character in the value"],
      ["X-A: b\rc", "CR in the value"],
      ["X-A: b\r", "CR at the end of the value"],
      ["X-A: b\nc: d", "LF in the value"],
      ["X-A: b\r\n c", "obs-fold"],
      ["X-A: b\r\n\tc", "obs-fold"],
    ])("%j: %s", async (line) => {
      expect(await scene.probe(withField(line))).toMatchObject(refused("400"));
    });

    test.each([
      ["X-A: caf\xe9 \xff", "caf\xe9 \xff", "bytes over 127 are passed on as they are"],
      ["X-A:b", "b", "no space behind the colon"],
      ["X-A: \t b \t", "b", "white space around the value"],
      ["X-A:", "", "an empty value"],
      ["X-A: a\tb", "a\tb", "a tab inside"],
      ["X-A: \xc3\xa9\xe2\x82\xac", "\xc3\xa9\xe2\x82\xac", "UTF-8 stays the same bytes"],
    ])("%j reaches the origin as %j: %s", async (line, value) => {
      const seen = await scene.probe(withField(line));
      expect(seen).toMatchObject(served(["GET /a"]));
      expect(seen.executed[0]?.header("x-a")).toBe(value);
    });

    test.each(["constructor", "__proto__", "toString", "hasOwnProperty", "valueOf"])(
      "a field called %s is a field like any other",
      async (name) => {
        const seen = await scene.probe(withField(`${name}: v`));
        expect(seen).toMatchObject(served(["GET /a"]));
        expect(seen.executed[0]?.head.toLowerCase()).toContain(`\r\n${name.toLowerCase()}: v`);
      },
    );
  });
});
