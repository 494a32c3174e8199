// ACME accounts: who certificates are ordered from; knows no other page.
import { JsonResourcePage } from "../../parts/json-resource-page.tsx";
import type { PageProps } from "../../pages.ts";

export default function AcmeAccountsPage(props: PageProps) {
  return (
    <JsonResourcePage
      {...props}
      example={{ name: "letsencrypt", email: "" }}
      table={{
        resource: "acme/accounts",
        page: "acme-accounts",
        title: "ACME accounts",
        text: "Authorities that certificates are ordered from.",
        columns: [],
        empty: {
          title: "No accounts yet",
          text: "With an account at an authority such as Let's Encrypt, certificates are ordered by themselves.",
        },
      }}
    />
  );
}
