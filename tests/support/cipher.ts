// Which cipher a server chooses.

/** CBC before GCM, the opposite of what a server should take. */
const OFFERED = ["AES256-SHA", "AES128-SHA", "AES256-GCM-SHA384", "AES128-GCM-SHA256"];

/** What a server takes of that which openssl offers over TLS 1.2 with CBC first, by OpenSSL's name; undefined without a handshake. */
export async function chosenCipher(port: number, serverName: string): Promise<string | undefined> {
  const offered = OFFERED.flatMap((name) => [`ECDHE-ECDSA-${name}`, `ECDHE-RSA-${name}`]);
  const child = Bun.spawn(
    [
      ...["openssl", "s_client", "-connect", `127.0.0.1:${port}`, "-tls1_2"],
      ...["-servername", serverName, "-cipher", offered.join(":")],
    ],
    { stdin: "ignore", stdout: "pipe", stderr: "ignore" },
  );
  return /Cipher is (\S+)/.exec(await new Response(child.stdout).text())?.[1];
}
