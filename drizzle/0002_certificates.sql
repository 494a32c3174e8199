CREATE TABLE `certificates` (
	`position` integer PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`created_at` text NOT NULL,
	`updated_at` text NOT NULL,
	`document` text NOT NULL,
	`name` text NOT NULL
);

CREATE UNIQUE INDEX `certificates_id_unique` ON `certificates` (`id`);
CREATE UNIQUE INDEX `certificates_name_unique` ON `certificates` (`name`);