// Users: the list, and which form to open.
import { Badge, Button, Group, Text } from "@mantine/core";
import { useMe } from "../../api/queries.ts";
import type { Schemas } from "../../api/resources.ts";
import type { PageProps } from "../../pages.ts";
import { EmptyState } from "../../parts/empty-state.tsx";
import { ResourceLoader } from "../../parts/form-page.tsx";
import { Can, PageHead } from "../../parts/page-layout.tsx";
import { ResourceTable } from "../../parts/resource-table.tsx";
import { StatusBadge } from "../../parts/status.tsx";
import { beginFirstRun } from "../../shell/first-run.ts";
import { UserForm } from "./user-form.tsx";

type User = Schemas["User"];

const TITLE = "Users";
const TEXT = "Users of the management API and their roles.";

export default function UsersPage({ id }: PageProps) {
  const { data: me } = useMe();
  // The first user is an administrator who signs in at once, on a separate page.
  if (me?.authentication === "disabled") return <NoUsersYet />;
  if (id === null) return <UserList />;
  return (
    <ResourceLoader resource="users" id={id}>
      {(start) => <UserForm key={id} {...start} />}
    </ResourceLoader>
  );
}

function NoUsersYet() {
  return (
    <>
      <PageHead title={TITLE} text={TEXT} />
      <EmptyState
        title="No users yet"
        text="Until the first user exists, anyone who can reach this address can change everything. The first user is an administrator."
      >
        <Can needs="admin">
          <Button onClick={beginFirstRun}>Create the first administrator</Button>
        </Can>
      </EmptyState>
    </>
  );
}

const hasRole = (role: string) => (user: User) => user.role === role;

function UserList() {
  const { data: me } = useMe();
  return (
    <ResourceTable
      resource="users"
      page="users"
      title={TITLE}
      text={TEXT}
      subtitle={({ id, email }) => (id === me?.user?.id ? `${email} (you)` : email)}
      columns={[
        {
          title: "Role",
          sortBy: ({ role }) => role,
          render: ({ role }) => <StatusBadge state={role} />,
          width: "6rem",
        },
        {
          title: "Sign-in",
          sortBy: ({ has_password: has, totp_enabled: totp }) => Number(has) + Number(totp),
          render: (user) => <Means user={user} />,
        },
        {
          title: "Description",
          sortBy: ({ description }) => description,
          render: ({ description }) => description,
        },
      ]}
      states={[
        { value: "admin", label: "Admins", fits: hasRole("admin") },
        { value: "editor", label: "Editors", fits: hasRole("editor") },
        { value: "viewer", label: "Viewers", fits: hasRole("viewer") },
        {
          value: "no-second-factor",
          label: "No second factor",
          fits: ({ has_password, totp_enabled }) => has_password && !totp_enabled,
        },
      ]}
      empty={{ title: "No users yet", text: "Create one for each administrator of this gateway." }}
    />
  );
}

function Means({ user }: { readonly user: User }) {
  const { has_password, totp_enabled, sso_linked } = user;
  if (!has_password && !sso_linked)
    return (
      <Text size="sm" c="dimmed">
        nothing yet
      </Text>
    );
  return (
    <Group gap={6}>
      {has_password && <Text size="sm">password</Text>}
      {sso_linked && <Text size="sm">{has_password ? "and SSO" : "SSO"}</Text>}
      {totp_enabled && (
        <Badge size="sm" variant="light" color="teal" tt="none">
          second factor
        </Badge>
      )}
    </Group>
  );
}
