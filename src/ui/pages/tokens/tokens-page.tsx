// Tokens of the management API: the list, and which form to open.
import { Text } from "@mantine/core";
import type { Schemas } from "../../api/resources.ts";
import type { PageProps } from "../../pages.ts";
import { ResourceLoader } from "../../parts/form-page.tsx";
import { ResourceTable } from "../../parts/resource-table.tsx";
import { RelativeTime, StatusBadge } from "../../parts/status.tsx";
import { AdminToken } from "./admin-token.tsx";
import { TokenForm } from "./token-form.tsx";
import { isExpired } from "./expiry.ts";

type Token = Schemas["Token"];

export default function TokensPage({ id }: PageProps) {
  if (id === null)
    return (
      <>
        <TokenList />
        <AdminToken />
      </>
    );
  return (
    <ResourceLoader resource="tokens" id={id}>
      {(start) => <TokenForm key={id} {...start} />}
    </ResourceLoader>
  );
}

const hasRole = (role: string) => (token: Token) => token.role === role;

function TokenList() {
  return (
    <ResourceTable
      resource="tokens"
      page="tokens"
      title="Tokens"
      text="API tokens for programs that use the management API."
      columns={[
        {
          title: "Role",
          sortBy: ({ role }) => role,
          render: ({ role }) => <StatusBadge state={role} />,
          width: "6rem",
        },
        {
          title: "Expires",
          sortBy: ({ expires_at: at }) => at,
          render: (token) => <Expiry token={token} />,
        },
        {
          title: "Last used",
          sortBy: ({ last_used_at: at }) => at,
          render: ({ last_used_at: at }) => (
            <Text size="sm" component="div" {...(at === null ? { c: "dimmed" } : {})}>
              <RelativeTime at={at} />
            </Text>
          ),
        },
      ]}
      states={[
        { value: "expired", label: "Expired", fits: isExpired },
        {
          value: "unused",
          label: "Never used",
          fits: ({ last_used_at: at }) => at === null,
        },
        { value: "admin", label: "Admins", fits: hasRole("admin") },
        { value: "editor", label: "Editors", fits: hasRole("editor") },
        { value: "viewer", label: "Viewers", fits: hasRole("viewer") },
      ]}
      empty={{
        title: "No tokens yet",
        text: "A token lets a program call the management API. Create one per program, so that each can be revoked alone.",
      }}
    />
  );
}

function Expiry({ token }: { readonly token: Token }) {
  if (token.expires_at === null)
    return (
      <Text size="sm" c="dimmed">
        never
      </Text>
    );
  if (isExpired(token)) return <StatusBadge state="expired" />;
  return (
    <Text size="sm" component="div">
      <RelativeTime at={token.expires_at} />
    </Text>
  );
}
