// The user's own account: password, second factor, sessions; knows no other user.
import { Badge, Button, Stack } from "@mantine/core";
import { useMe } from "../../api/queries.ts";
import type { Schemas } from "../../api/resources.ts";
import { EmptyState } from "../../parts/empty-state.tsx";
import { Can, Fact, PageHead, Section } from "../../parts/page-layout.tsx";
import { FormSkeleton } from "../../parts/skeletons.tsx";
import { RelativeTime } from "../../parts/status.tsx";
import { beginFirstRun } from "../../shell/first-run.ts";
import { roleTexts } from "../users/roles.ts";
import { SignInMeans } from "./sign-in-means.tsx";
import { SessionList } from "./session-list.tsx";

export default function AccountPage() {
  const { data: me } = useMe();
  if (me === undefined || me === null) return <FormSkeleton />;
  return (
    <Stack gap={0} maw={920}>
      <PageHead title="Your account" text="Password, second factor and sessions." />
      {me.user === null ? (
        <EmptyState
          title="No users yet"
          text="Until the first user exists, anyone who can reach this address can change everything."
        >
          <Can needs="admin">
            <Button onClick={beginFirstRun}>Create the first administrator</Button>
          </Can>
        </EmptyState>
      ) : (
        <Account me={me} user={me.user} />
      )}
    </Stack>
  );
}

interface AccountProps {
  readonly me: Schemas["Me"];
  readonly user: NonNullable<Schemas["Me"]["user"]>;
}

function Account({ me, user }: AccountProps) {
  return (
    <>
      <Section title="You">
        <Stack gap={6}>
          <Fact label="Name">{user.name}</Fact>
          <Fact label="E-mail address">{user.email}</Fact>
          <Fact label="Role">
            <Badge variant="light" tt="none" mr={8}>
              {me.role}
            </Badge>
            {roleTexts[me.role]}
          </Fact>
          <Fact label="This session ends">
            <RelativeTime at={me.expires_at} />
          </Fact>
        </Stack>
      </Section>
      <SignInMeans userId={user.id} />
      <Section title="Sessions" text="Browsers in which you are signed in.">
        <SessionList userId={user.id} isOwn />
      </Section>
    </>
  );
}
