CREATE TABLE "sluice"."lease" (
	"name" text PRIMARY KEY NOT NULL,
	"holder" uuid NOT NULL,
	"node_id" text NOT NULL,
	"epoch" bigint NOT NULL,
	"expires" timestamp with time zone NOT NULL
);
