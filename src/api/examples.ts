// Examples of requests in the API description, by the name of their schema; the tests check them against the schemas.

export const examples: Readonly<Record<string, object>> = {
  SignIn: { email: "ada@example.com", password: "correct horse battery staple" },
  ServiceInput: { name: "web", targets: [{ host: "10.0.0.5", port: 3000 }] },
  TargetInput: { service_id: "web", host: "10.0.0.6", port: 3000, weight: 50 },
  RouteInput: { name: "shop", service_id: "web", hosts: ["shop.example.com"], paths: ["/"] },
  ListenerInput: { name: "internal", address: "127.0.0.1", port: 8081, protocol: "http" },
  StreamRouteInput: { name: "db", listen_port: 5432, service_id: "postgres" },
  ApplicationInput: {
    name: "wiki",
    domains: ["wiki.example.com"],
    upstream: "http://10.0.0.7:8080",
  },
  PluginInput: {
    name: "rate-limit",
    route_id: "shop",
    config: { limits: [{ requests: 100, window: 60 }] },
  },
  ConsumerInput: { username: "ada", groups: ["staff"] },
  CredentialInput: { consumer_id: "ada", type: "key", name: "laptop" },
  CertificateInput: { name: "shop", source: "acme", domains: ["shop.example.com"] },
  AcmeAccountInput: {
    name: "letsencrypt",
    directory_url: "https://acme-v02.api.letsencrypt.org/directory",
    email: "ops@example.com",
    terms_agreed: true,
  },
  DnsProviderInput: { name: "zone", type: "cloudflare", config: { api_token: "the token" } },
  AlertInput: {
    name: "ops",
    type: "webhook",
    events: ["target_down"],
    config: { url: "https://hooks.example.com/gateway" },
  },
  SecretInput: { name: "ldap-password", value: "the value" },
  UserInput: {
    email: "ada@example.com",
    name: "Ada",
    role: "admin",
    password: "correct horse battery staple",
  },
  TokenInput: { name: "deploy", role: "editor" },
  SettingsInput: { public_url: "https://gateway.example.com", debug_headers: true },
};
