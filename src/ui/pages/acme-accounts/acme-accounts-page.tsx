// ACME accounts: the list, and which form to open.
import { Badge, Group, Text } from "@mantine/core";
import { useResourceList } from "../../api/queries.ts";
import type { Read } from "../../api/resources.ts";
import { resourcePage } from "../../parts/form-page.tsx";
import { ResourceTable } from "../../parts/resource-table.tsx";
import { AccountForm } from "./account-form.tsx";
import { caName } from "./cas.ts";

type Account = Read<"acme/accounts">;

export default resourcePage("acme/accounts", AccountList, AccountForm);

function AccountList() {
  const countOf = useCount();
  return (
    <ResourceTable
      resource="acme/accounts"
      page="acme-accounts"
      title="ACME accounts"
      text="Accounts at CAs that issue certificates."
      columns={[
        {
          title: "CA",
          sortBy: ({ directory_url: url }) => caName(url),
          render: (account) => <Directory account={account} />,
        },
        {
          title: "E-mail address",
          sortBy: ({ email }) => email,
          render: ({ email }) => email ?? <Text c="dimmed">none</Text>,
        },
        {
          title: "Certificates",
          sortBy: countOf,
          render: countOf,
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

/** How many certificates use an account; those that name none use the oldest one. */
function useCount(): (account: Account) => number {
  const { data: certificates = [] } = useResourceList("certificates");
  const { data: accounts = [] } = useResourceList("acme/accounts");
  const oldest = accounts
    .filter(({ enabled }) => enabled)
    .toSorted((one, other) => one.created_at.localeCompare(other.created_at))[0];
  return ({ id }) =>
    certificates.filter(
      ({ source, acme_account_ids: ids }) =>
        source === "acme" && (ids.length === 0 ? oldest?.id === id : ids.includes(id)),
    ).length;
}
