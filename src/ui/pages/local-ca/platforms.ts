// How each platform trusts a root, in words and commands; renders nothing.
export interface Platform {
  readonly name: string;
  readonly steps: readonly string[];
  readonly command: string | null;
}

const FILE = "sluice-local-ca.crt";

export const platforms = ({
  origin,
  fingerprint,
}: {
  readonly origin: string;
  readonly fingerprint: string;
}): readonly Platform[] => [
  {
    name: "Linux, with Chromium and Firefox",
    steps: [
      "Run the command: it adds the root to the system and to the browsers of the user, and says what it did.",
    ],
    command: `sudo sluice trust --url ${origin} --fingerprint ${fingerprint}`,
  },
  {
    name: "Windows",
    steps: [
      "Download the certificate (DER) and run the command in its folder, in a terminal as administrator.",
    ],
    command: `certutil -addstore -f ROOT ${FILE}`,
  },
  {
    name: "macOS",
    steps: ["Download the certificate (DER) and run the command in its folder."],
    command: `sudo security add-trusted-cert -d -r trustRoot -k /Library/Keychains/System.keychain ${FILE}`,
  },
  {
    name: "iOS and iPadOS",
    steps: [
      "Scan the QR code and open the link in Safari; allow the download of the profile.",
      "Settings, General, VPN & Device Management: install the profile.",
      "Settings, General, About, Certificate Trust Settings: turn on full trust for the root.",
    ],
    command: null,
  },
  {
    name: "Android",
    steps: [
      "Scan the QR code and download the certificate.",
      "Settings, Security, Encryption & credentials, Install a certificate, CA certificate: choose the file. Browsers then trust it; other apps may not.",
    ],
    command: null,
  },
  {
    name: "Firefox",
    steps: [
      "On Windows, macOS and Android it follows the system (security.enterprise_roots.enabled).",
      "Otherwise: Settings, Privacy & Security, View Certificates, Import, and trust it to identify websites.",
    ],
    command: null,
  },
];
