/**
 * Everyday words that tools seldom use, each with the words that tools use instead. A rule counts only if (almost) no
 * tool has the everyday word itself, so that a catalog's own words always win. synonyms.ts explains the notation. No line
 * may name a server or a tool.
 */
export const FALLBACKS = `
upsert > insert update | toggle > switch | append > add | manage > administer | scan > audit | audit > scan check
enroll > enrol register | choose > pick select | pick > select choose | fix > repair resolve | solve > resolve | push > upload
pull > get fetch | grab > get fetch | give > get show | see > view show list | know > get | learn > get | collect > gather get
gather > collect | acquire > get obtain | provide > get | put > add set | take > capture | keep > save store | wipe > clear delete
eliminate > delete remove | swap > replace switch | switch > change | setup > create configure | spin > create start | kick > start run
shut > stop close | reach > contact send | reply > respond answer comment | respond > reply answer | ask > query | question > query
identify > find detect | determine > check get | pinpoint > locate find | locate > find search | examine > analyze inspect
gauge > measure | measure > calculate | dump > export | backup > export | arrange > organize | organize > arrange manage
reorganize > move | categorize > classify | classify > categorize | draft > create write | author > create write | compose > write create
print > show output | display > show | expose > show | report > show | issue > create | raise > create | initialize > create start init
bootstrap > create init | init > create initialize | establish > create connect | instantiate > create | append > insert
prepend > insert | drag > move | hover > mouse | highlight > select | paste > insert | attach > upload | strip > remove
trim > remove cut | crop > cut | prune > delete remove | archive > store | dismiss > close | reopen > open | finish > complete end
complete > finish done | mark > set | flag > mark label | tag > label | annotate > comment label | star > favorite bookmark
follow > subscribe | subscribe > register | unsubscribe > remove | share > permission | transfer > move | migrate > move import
convert > export | parse > extract | tokenize > split | decode > parse | encode > convert | scrape > fetch | crawl > fetch
surf > browse navigate | preview > view show | peek > view | poll > check get | probe > check test | debug > diagnose troubleshoot
diagnose > troubleshoot check | troubleshoot > diagnose | benchmark > test measure | profile > analyze | assess > evaluate
score > evaluate rate | grade > evaluate score | judge > evaluate | forecast > predict | infer > predict | guess > predict
suggest > recommend | advise > recommend | propose > recommend suggest | guide > recommend help | invite > send | notify > send
broadcast > send | forward > send | transmit > send | ship > deploy release | rollout > deploy | host > deploy | spawn > start create
fire > trigger | schedule > create | postpone > reschedule update | reschedule > update change | renew > update extend | extend > update
upgrade > update | refresh > update reload | reload > refresh | adjust > set | tweak > change update | tune > configure
customize > configure change | override > set | bump > update | increase > update scale | decrease > update scale | mount > attach
unmount > detach | join > merge | sum > aggregate | average > aggregate | tally > count | rank > sort | money > payment currency
cash > balance | bank > account | wallet > account balance | fund > asset | pic > picture image | logo > icon image | figure > chart image
drawing > diagram image | illustration > image | thumbnail > image | wallpaper > image | vid > video | clip > video | talk > speech
transcript > text | caption > subtitle | subtitle > caption | sentence > text | word > text | line > row text | cell > table
string > text | letter > document | essay > document | contract > document | form > document | attachment > file | binary > file
zip > archive file | folder > path | town > city | region > area location | area > region | country > region | neighborhood > area
landmark > place poi | spot > place | shop > place | cafe > restaurant | subway > metro transit station | bus > transit
transit > transport | transport > transportation | transportation > transport transit | car > vehicle driving | drive > driving route
walk > walking route | bike > cycling bicycle | commute > travel route | airport > flight | stop > station
hospital > medical | doctor > clinical | illness > disease | symptom > disease | mutation > variant | dna > gene | protein > gene
chemical > compound | molecule > compound | dish > recipe | ingredient > recipe | cooking > recipe | tournament > league match
league > tournament | sport > match | laptop > computer device | phone > device | sensor > device | hardware > device | operating > os
os > system | kernel > system | cpu > processor | gpu > processor | memory > ram | usage > utilization consumption | consumption > usage
performance > metric speed | latency > performance | uptime > availability status | availability > status available | downtime > outage
capacity > quota limit | quota > limit | limit > quota | bandwidth > network | port > network | proxy > network | gateway > network
tunnel > vpn | site > location | office > location | tenant > organization | workspace > project | environment > workspace
sandbox > environment | credential > secret | passphrase > password | otp > factor | session > login | cookie > session
permission > role | privilege > permission role | acl > permission | grant > permission | ownership > owner | owner > user
admin > user role | administrator > user | colleague > employee user | teammate > member | coworker > employee | staff > employee
personnel > employee | boss > manager | hire > candidate | resume > candidate | cv > candidate | subscriber > subscription
buyer > customer | shopper > customer | seller > vendor | vendor > supplier | supplier > vendor | partner > company | shipment > order
delivery > order | cart > order | warehouse > inventory | merchandise > product | sku > product | listing > item | bargain > discount
voucher > coupon | receipt > invoice | expense > payment | spending > cost | budget > cost | revenue > income | profit > income
debt > balance | loan > credit | credit > balance | interest > rate | yield > dividend | bond > asset | commodity > asset | fund > etf
broker > trading | trade > trading order transaction | trading > trade | candle > ohlcv | ohlc > ohlcv price | market > exchange
exchange > market | blockchain > crypto | nft > token | wallet > address | block > blockchain | poem > text | blog > post article
tweet > post | feed > news rss | bulletin > news | press > news | journalism > news | magazine > article | journal > paper
thesis > paper | abstract > paper | scholar > paper academic | academic > paper scholarly | bibliography > reference citation
fact > information | definition > meaning | glossary > definition | faq > help documentation
manual > documentation guide | tutorial > guide | howto > guide | example > sample | sample > example | boilerplate > template
scaffold > template | skeleton > template | blueprint > template | draft > document | outline > structure | heading > title
header > title | footer > page | margin > layout | font > style | theme > style | css > style | animation > effect | transition > effect
shape > element | canvas > drawing | mockup > design | wireframe > design | ux > design | frontend > ui | backend > server
microservice > service | daemon > service | cron > schedule | cronjob > job schedule | batch > job | thread > process | task > process
worker > agent | runner > agent | bot > agent | robot > agent | copilot > agent | llm > completion
inference > prediction model | training > model | dataset > table | warehouse > database | datastore > database | storage > blob
s3 > bucket storage | blob > storage | lookup > search | autocomplete > suggestion
suggestion > recommendation | recommendation > suggestion | insight > analysis | analysis > analytics | analytics > analysis metric
kpi > metric | trend > history | log > audit | audit > log | telemetry > metric log | trace > span | span > trace | exception > error
crash > error | stacktrace > error | warning > alert | fault > error | breach > security incident | intrusion > threat
exploit > vulnerability | patch > update | hotfix > release | milestone > release | sprint > iteration | iteration > sprint | epic > issue
story > issue | backlog > issue | board > project | kanban > board | ticket > request | request > ticket | case > ticket
complaint > ticket | survey > feedback | poll > survey | quiz > question | exam > test | grade > score | mark > score
teacher > instructor | class > course | curriculum > course | degree > education | birthday > date | day > date | hour > time
minute > time | clock > time | today > date | tomorrow > date | yesterday > date | week > date | month > date | year > date
deadline > date`;
