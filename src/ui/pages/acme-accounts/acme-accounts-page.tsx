// ACME accounts: the list, and which form to open.
import { Badge, Group, Text } from "@mantine/core";
import { useResourceList } from "../../api/queries.ts";
import type { Read } from "../../api/resources.ts";
import { ResourceLoader } from "../../parts/form-page.tsx";
import { ResourceTable } from "../../parts/resource-table.tsx";
import type { PageProps } from "../../pages.ts";
import { AccountForm } from "./account-form.tsx";
import { caName } from "./cas.ts";

type Account = Read<"acme/accounts">;

export default function AcmeAccountsPage({ id }: PageProps) {
  if (id === null) return <AccountList />;
  return (
    <ResourceLoader resource="acme/accounts" id={id}>
      {(start) => <AccountForm key={id} {...start} />}
    </ResourceLoader>
  );
}

function AccountList() {
  return (
    <ResourceTable
      resource="acme/accounts"
      page="acme-accounts"
      title="ACME accounts"
      text="Accounts at CAs that issue certificates."
      columns={[
        { title: "CA", render: (account) => <Directory account={account} /> },
        {
          title: "E-mail address",
          render: ({ email }) => email ?? <Text c="dimmed">none</Text>,
        },
        {
          title: "Certificates",
          render: (account) => <Count account={account} />,
          width: "8rem",
        },
      ]}
      searchText={({ directory_url: url }) => caName(url)}
      states={[{ value: "trials", label: "Staging", fits: ({ staging }: Account) => staging }]}
      empty={{
        title: "No accounts yet",
        text: "With an account at a CA such as Let's Encrypt, the gateway requests and renews certificates automatically.",
      }}
    />
  );
}

function Directory({ account }: { readonly account: Account }) {
  return (
    <Group gap={6}>
      <Text size="sm">{caName(account.directory_url)}</Text>
      {account.staging && (
        <Badge size="xs" variant="light" color="yellow" tt="none">
          staging
        </Badge>
      )}
    </Group>
  );
}

/** How many certificates use it; those that name none use the oldest account. */
function Count({ account }: { readonly account: Account }) {
  const { data: certificates = [] } = useResourceList("certificates");
  const { data: accounts = [] } = useResourceList("acme/accounts");
  const oldest = accounts
    .filter(({ enabled }) => enabled)
    .toSorted((one, other) => one.created_at.localeCompare(other.created_at))[0];
  const count = certificates.filter(
    ({ source, acme_account_ids: ids }) =>
      source === "acme" &&
      (ids.length === 0 ? oldest?.id === account.id : ids.includes(account.id)),
  ).length;
  return <Text size="sm">{count}</Text>;
}
