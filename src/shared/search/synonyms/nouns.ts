/**
 * General synonym groups of nouns: software, data, office work, business, finance, travel, media. synonyms.ts explains
 * the notation. No line may name a server or a tool.
 */
export const NOUNS = `
info information detail metadata property | about > info | data information | attribute property field | parameter argument option
config configuration setting | preference setting | option choice | status state health | value amount | content text body | name title
description summary | id identifier | key identifier | list collection | item entry record | entry record | row record | record document
column field | table sheet | collection table | schema structure definition | type kind category | category classification | tag label
version release | template layout theme | error failure exception problem | issue ticket bug | problem issue | bug defect issue
task todo job | task item | job run execution | workflow pipeline automation | pipeline workflow | build job | project workspace
file document | document doc docs | docs documentation | documentation doc guide reference | guide tutorial documentation
path location | folder directory dir | image picture photo | picture photo | screenshot image
video clip movie | movie film | song music track | audio sound voice | speech voice audio | podcast audio
spreadsheet excel workbook sheet | worksheet sheet | presentation slide powerpoint deck | slide page | paragraph text
docx > word document | xlsx xls csv > excel spreadsheet sheet | pptx ppt > powerpoint presentation | powerpoint ppt | pdf > document
txt md > file text | json yaml > file | readme > documentation | markdown md | png jpg jpeg gif > image
mp3 wav > audio | mp4 > video | html > page web | website site web | web internet online | webpage page website | page webpage
url link uri address | domain hostname | browser web | wiki > documentation | article page post
paper article publication study | paper preprint | literature paper article | research study | novel book | author writer
citation reference | news headline article | headline news | trend trending popular hot | popular top trending | ranking rank leaderboard
rank top | story post | topic subject | comment reply | review comment feedback | discussion conversation thread | message chat dm
conversation chat message | channel room | email mail | inbox mail email | mailbox email | newsletter email | contact person
contact people | user account member | person people individual | person user | profile user | team group | group team
organization organisation org company | company business firm corporation | business company | client customer | customer client account
employee worker staff | worker staff | candidate applicant | applicant application candidate | application app | interview meeting
hiring recruiting recruitment | vacancy job position | manager supervisor | department team | salary compensation pay
leave absence timeoff pto vacation | holiday vacation | shift schedule | course training lesson | lead prospect | prospect lead
deal opportunity | sale deal | campaign marketing | permission access right | role permission | policy rule | rule policy
secret credential | password credential | credential login | token key | certificate cert | apikey key | identity user
mfa twofactor factor | sso login | device machine computer | endpoint device | computer machine | server host machine | host machine
vm > virtual machine | instance machine | cluster node | node entity | edge relation link | relation relationship link | link relation
entity node object | graph network | knowledge memory | memory knowledge | note memo | note memory | container docker | pod container
k8s kubernetes | kubernetes k8s | database db | dataset data table | sql query
query search | statement query | index indices | backup snapshot | storage disk | volume disk | bucket container | blob object file
queue message | event log | log trace | log history | history timeline | metric measure | metric statistic | statistic stats
stats statistic metric | report summary | dashboard report | alert alarm notification | incident alert | outage incident | threat attack
vulnerability security cve | malware virus | cve vulnerability | firewall filter | traffic network | ip address | dns domain
subnet network | vpn network | location place | address location | place poi | restaurant food place | nearby around near
route direction | direction navigation route | map location | distance route | coordinate latitude longitude | geocode coordinate address
city location | hotel accommodation lodging | flight airline | train railway
ticket pass | trip travel journey | travel trip | weather forecast | temperature weather | time date clock | date time day
today now current | now current | latest newest recent current | recent latest | last latest previous | timezone time
calendar event schedule | meeting event appointment | appointment event | reminder alarm | stock share equity | stock ticker
ticker symbol | price quote cost | price rate | quotation quote | cost price billing | fee price charge | currency money forex
exchange rate | gold silver platinum > metal | bitcoin btc ethereum eth > crypto cryptocurrency coin
crypto cryptocurrency coin | token coin | dollar euro yen usd eur > currency exchange | finance financial | market stock
portfolio holding position | holding position | dividend payout | earning income | income revenue profit | revenue sale | balance fund
transaction payment | payment transaction charge | invoice bill | bill invoice | subscription plan | plan subscription
discount coupon promotion | coupon promo | product item | goods product | shop store | order purchase | inventory stock
refund return | tax vat | repository repo | repo project | branch ref | commit change revision | revision version commit | change commit
pr > pull request | pull request | pr > pullrequest | mr > merge request | diff change | code source | snippet code | function method
class type | library package | package dependency library | dependency package | dep dependency | module package | framework library
component widget element | icon symbol | button element | element selector | ui interface | api endpoint | endpoint api | request call
response answer | webhook callback | sdk library | cli command | command cli | terminal shell | shell command | script program
process program | program application | plugin extension | function lambda | variable parameter | ci build | release version
changelog release | license licence | maintainer author | test case | model llm
llm > model ai | ai > model | chatbot bot agent | agent assistant | prompt instruction | completion response | embedding vector
vector embedding | semantic vector | chart graph plot diagram | pie bar line > chart | diagram flowchart | timeline history
number numeric | math calculate | equation formula expression | formula expression
expression calculate | goal objective | progress status | checklist list task
priority importance | deadline due | due deadline | game gaming | player user
match game | score rating | recipe meal food | food meal | drug medicine medication | disease condition | gene variant | trial study
clinical medical | patient person | health status | school education | student learner`;
